package reservation_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// These tests are the rows of docs/failover.md#clocks. In all of them a hold is made for a minute,
// and its token expires five seconds before.

// end ends what is overdue, and fails the test unless it is so many.
func (c *clocked) end(want int) {
	c.t.Helper()
	if n, err := c.Expire(stocktest.Soon(c.t), "s"); n != want || err != nil {
		c.t.Errorf("%d holds end, %v; want %d", n, err, want)
	}
}

// heard lets the store hear of the server twice, with time between, as edges do.
func (c *clocked) heard() {
	c.t.Helper()
	c.step(time.Second)
	c.end(0)
}

// believed lets a step last until it is believed.
func (c *clocked) believed() {
	c.t.Helper()
	for range 12 {
		c.heard()
	}
}

// late is how much later a hold may end where a clock has stepped: the clock is stored every
// second.
const late = time.Second

// endsIn fails the test unless a hold ends after so much time, or a little later.
func (c *clocked) endsIn(left time.Duration) {
	c.t.Helper()
	c.step(left - time.Millisecond)
	c.end(0)
	c.step(time.Millisecond + late)
	c.end(1)
}

// endsAt fails the test unless a hold that was made is there, and ends after so much time,
// not a moment before.
func (c *clocked) endsAt(left time.Duration) {
	c.t.Helper()
	c.step(left - time.Millisecond)
	c.end(0)
	c.step(time.Millisecond)
	c.end(1)
}

// refused says what a reserve is refused with; nil: it is made.
func (c *clocked) refused(id string) (*sale.Refusal, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), stocktest.Long)
	defer cancel()
	_, refusal, err := c.Reserve(ctx, c.claimOf(id, inMode(record.ModeBackend)))
	return refusal, err
}

// lead is what Redis has stored of it, in whole seconds.
func (c *clocked) lead() int {
	c.t.Helper()
	text, _ := c.server.client.HGet(stocktest.Soon(c.t), c.Shard().ShardKeys("s")[0], "lead").Result()
	ms, _ := strconv.Atoi(text)
	if ms < 0 {
		return -((-ms + 500) / 1000)
	}
	return (ms + 500) / 1000
}

// endsSoon makes the sale one that ends in an hour.
func (c *clocked) endsSoon() {
	c.t.Helper()
	file := stocktest.OpenSale("s", 9)
	file.EndsAt = c.now.Add(time.Hour).Truncate(time.Second)
	if _, err := c.Apply(stocktest.Soon(c.t), file, reservation.ApplyOptions{By: "test"}); err != nil {
		c.t.Fatal(err)
	}
}

// Two hours forward for 2.5 s: nothing ends early, nothing is late, and the sale that ends in
// an hour sells as soon as the time is back.
func TestForwardAndBack(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.endsSoon()
		c.heard()
		c.reserve("before", inMode(record.ModeBackend))
		c.jump(2 * time.Hour)
		for range 5 {
			c.step(500 * time.Millisecond)
			c.end(0)
			if refusal, err := c.refused("meanwhile"); refusal != nil || !errors.Is(err, reservation.ErrLate) {
				t.Errorf("while the clock is wrong: %+v, %v; want a late reserve", refusal, err)
			}
			if ends := c.Now("s"); ends.After(c.now.Add(-time.Hour)) {
				t.Errorf("the edge takes it to be %v already", ends)
			}
		}
		c.jump(-2 * time.Hour)
		h := c.reserve("after", inMode(record.ModeBackend), func(cl *reservation.ReserveRequest) { cl.HoldFor = 3 * time.Second })
		if want := c.now.Add(-2 * time.Second); !h.Exp.Equal(want) || !h.Created.Equal(c.now) {
			t.Errorf("the token is of %v until %v, want %v until %v", h.Created, h.Exp, c.now, want)
		}
		c.endsIn(3 * time.Second)
		c.endsIn(time.Minute - 5500*time.Millisecond - late)
		if c.end(0); c.lead() != 0 {
			t.Errorf("a lead of %d s is left", c.lead())
		}
	})
}

// Two hours forward for good: what was held keeps its time, and is not ended when the step is
// believed.
func TestForwardForGood(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.heard()
		h := c.reserve("before", inMode(record.ModeBackend))
		c.jump(2 * time.Hour)
		c.believed()
		if c.lead() != -7200 {
			t.Errorf("the lead is %d s, want -7200", c.lead())
		}
		after := c.reserve("after", inMode(record.ModeBackend))
		if want := c.now.Add(55 * time.Second); !after.Exp.Equal(want) {
			t.Errorf("the token is good until %v, want %v", after.Exp, want)
		}
		r, err := c.Reservation(stocktest.Soon(t), "before")
		if err != nil || r.Deadline.Sub(h.Deadline).Round(2*time.Second) != 2*time.Hour {
			t.Errorf("the deadline is shown as %v, %v; want two hours after %v", r.Deadline, err, h.Deadline)
		}
		c.step(46 * time.Second)
		c.end(0)
		c.step(3 * time.Second) // the tolerance is in the estimate
		c.end(1)
		c.step(12 * time.Second)
		c.end(1)
		c.end(0)
		if c.lead() != 0 {
			t.Errorf("no hold is left, and a lead of %d s", c.lead())
		}
	})
}

// Two hours back for good: the token of what was held is good for two hours more, and its units
// are not sold to another buyer before. What the shop of a gate with `outcome response` may have
// is in doubt in time. What is held from now on ends in time.
func TestBackForGood(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.heard()
		c.reserve("before", inMode(record.ModeBackend))
		c.reserve("answered")
		c.jump(-2 * time.Hour)
		if c.lead() != 7200 {
			t.Errorf("the lead is %d s, want 7200", c.lead())
		}
		h := c.reserve("after", inMode(record.ModeBackend))
		if want := c.now.Add(55 * time.Second); !h.Exp.Equal(want) || !h.Deadline.Equal(want.Add(5*time.Second)) {
			t.Errorf("held until %v, the token until %v; want %v for the token", h.Deadline, h.Exp, want)
		}
		c.step(time.Minute - time.Millisecond)
		c.end(0)
		c.step(time.Millisecond)
		c.end(2)
		c.must(record.InDoubt)(c.state("answered"))
		c.must(record.Expired)(c.state("after"))
		if _, err := c.Release(stocktest.Soon(t), "s", "answered", reservation.SourceOperator, ""); !errors.As(err, new(*reservation.TooSoonError)) {
			t.Errorf("an operator releases what has a good token: %v", err)
		}
		c.step(2*time.Hour - time.Millisecond)
		c.end(0)
		c.must(record.Held)(c.state("before"))
		c.step(time.Millisecond)
		c.end(1)
		c.must(record.Released)(c.Release(stocktest.Soon(t), "s", "answered", reservation.SourceOperator, ""))
	})
}

func (c *clocked) state(id string) (record.State, error) {
	c.t.Helper()
	r, err := c.Reservation(stocktest.Soon(c.t), id)
	if err != nil {
		return "", err
	}
	return r.State, nil
}

// Steps forward and back again and again leave nothing behind.
func TestStepsRepeated(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.heard()
		c.reserve("r1", inMode(record.ModeBackend))
		for range 10 {
			c.jump(2 * time.Hour)
			c.heard()
			c.jump(-2 * time.Hour)
			c.heard()
			c.jump(-2 * time.Hour)
			c.heard()
			c.jump(2 * time.Hour)
			c.heard()
		}
		if lead := c.lead(); lead < -2 || lead > 2 {
			t.Errorf("a lead of %d s is left", lead)
		}
		c.step(18 * time.Second) // 58 s since
		c.end(0)
		c.step(10 * time.Second)
		c.end(1)
	})
}

// With the stored clock two hours ahead, as an older edge leaves it, the token and the hold
// end in time, and the unit is sold once.
func TestStoredClockAhead(t *testing.T) {
	eachClock(t, 1, func(t *testing.T, c *clocked) {
		if err := c.server.client.HSet(stocktest.Soon(t), c.Shard().ShardKeys("s")[0], "clock", c.now.Add(2*time.Hour).UnixMilli()).Err(); err != nil {
			t.Fatal(err)
		}
		c.heard()
		h := c.reserve("first", inMode(record.ModeBackend))
		if want := c.now.Add(55 * time.Second); !h.Exp.Equal(want) {
			t.Errorf("the token is good until %v, want %v", h.Exp, want)
		}
		c.endsAt(time.Minute)
		if c.now.Before(h.Exp) {
			t.Errorf("at %v the hold has ended, and its token is good until %v", c.now, h.Exp)
		}
		c.reserve("second", inMode(record.ModeBackend))
	})
}

// A step back is stored by whatever notices it first, also by what is refused, and by nothing
// else: a refusal writes nothing.
func TestRefusalStoresStep(t *testing.T) {
	eachClock(t, 1, func(t *testing.T, c *clocked) {
		c.reserve("r1", inMode(record.ModeBackend))
		for name, refuse := range map[string]func() error{
			"reserve": func() error { _, err := c.refused("r2"); return err },
			"settle": func() error {
				_, err := c.Doubt(stocktest.Soon(t), "s", "unknown", "")
				if errors.Is(err, reservation.ErrNotFound) {
					return nil
				}
				return err
			},
			"manage": func() error {
				_, err := c.Adjust(stocktest.Soon(t), "s", "adjustment", "nowhere", 1, "test")
				if errors.Is(err, shard.ErrRefused) {
					return nil
				}
				return err
			},
		} {
			before, lead := stocktest.Balanced(t, c.server.client, c.Store, "s"), c.lead()
			if err := refuse(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := stocktest.Balanced(t, c.server.client, c.Store, "s").Differs(before); err != nil {
				t.Errorf("%s is refused and has changed something: %v", name, err)
			}
			c.now = c.now.Add(-time.Hour)
			c.server.setTime(c.now.UnixMilli())
			if err := refuse(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if c.lead() != lead+3600 {
				t.Errorf("%s is refused after a step back: the lead is %d s, want %d", name, c.lead(), lead+3600)
			}
		}
	})
}

// An edge that has just begun cannot tell how late it is: it ends nothing before it has heard
// Redis twice. Of several edges the one that knows of a step keeps all from ending early.
func TestOtherEdges(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.heard()
		c.reserve("r1", inMode(record.ModeBackend))
		c.jump(2 * time.Hour)
		fresh := stocktest.OpenStore(t, c.server.options)
		for range 2 {
			if n, err := fresh.Expire(stocktest.Soon(t), "s"); n != 0 || err != nil {
				t.Errorf("an edge that has just begun ends %d, %v", n, err)
			}
		}
		c.end(0) // it takes the step off the clock of all, at once
		if n, err := fresh.Expire(stocktest.Soon(t), "s"); n != 0 || err != nil {
			t.Errorf("the other edge ends %d, %v", n, err)
		}
		if lead := c.lead(); lead > -7190 {
			t.Errorf("the lead is %d s", lead)
		}
	})
}

// An edge that stood still, with its clock, ends nothing before it has caught up, and does not
// turn the clock of the others back.
func TestEdgeStoodStill(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.heard()
		still := stocktest.OpenStore(t, c.server.options)
		for range 2 {
			if _, err := still.Expire(stocktest.Soon(t), "s"); err != nil {
				t.Fatal(err)
			}
		}
		c.step(time.Hour)
		c.reserve("r1", inMode(record.ModeBackend))
		c.step(time.Minute - time.Second)
		c.end(0)
		c.step(time.Second)
		for range 3 {
			if n, err := still.Expire(stocktest.Soon(t), "s"); n != 0 || err != nil {
				t.Errorf("the edge that stood still ends %d, %v", n, err)
			}
		}
		c.step(late)
		c.end(1)
		if lead := c.lead(); lead < -1 {
			t.Errorf("it has turned the clock back: the lead is %d s", lead)
		}
	})
}

// Ending a lead leaves every hold the time that it has left, in one call that the journal tells.
func TestAlign(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.heard()
		c.jump(-2 * time.Hour)
		c.reserve("held", inMode(record.ModeBackend))
		c.reserve("doubt")
		if _, err := c.Doubt(stocktest.Soon(t), "s", "doubt", "status_500"); err != nil {
			t.Fatal(err)
		}
		c.step(20 * time.Second)
		shown := func(id string) [3]time.Time {
			r, err := c.Reservation(stocktest.Soon(t), id)
			if err != nil {
				t.Fatal(err)
			}
			return [3]time.Time{r.Deadline, r.Changed, r.Exp}
		}
		before, n := [2][3]time.Time{shown("held"), shown("doubt")}, c.seq()
		lead, moved, err := c.Align(stocktest.Soon(t), "s", "operator")
		if err != nil || lead.Round(time.Minute) != 2*time.Hour || moved != 2 {
			t.Errorf("a lead of %v was ended, %d holds moved, %v", lead, moved, err)
		}
		if after := [2][3]time.Time{shown("held"), shown("doubt")}; after != before {
			t.Errorf("the holds are shown as %v, were %v", after, before)
		}
		if told := c.told("was", n); len(told) != 2 || told[0] != "extended held" || told[1] != "extended in_doubt" {
			t.Errorf("the journal tells %q", told)
		}
		stocktest.Balanced(t, c.server.client, c.Store, "s")
		if c.lead() != 0 {
			t.Errorf("a lead of %d s is left", c.lead())
		}
		if lead, moved, err = c.Align(stocktest.Soon(t), "s", "operator"); lead != 0 || moved != 0 || err != nil {
			t.Errorf("again: %v, %d, %v", lead, moved, err)
		}
		c.endsAt(40 * time.Second)
	})
}

// An extended hold has a token that ends as long before it as ever, by Redis's own time, also
// after a step.
func TestExtendAfterStep(t *testing.T) {
	for name, step := range map[string]time.Duration{"back": -2 * time.Hour, "forward": 2 * time.Hour, "none": 0} {
		eachClock(t, 9, func(t *testing.T, c *clocked) {
			c.heard()
			c.reserve("r1", inMode(record.ModeBackend))
			c.jump(step)
			c.believed()
			for range 2 {
				h, err := c.Extend(stocktest.Soon(t), "s", "r1", 5*time.Minute, time.Hour)
				if want := c.now.Add(5*time.Minute - 5*time.Second); err != nil || h.Exp.Sub(want).Abs() > time.Second || h.Deadline.Sub(h.Exp) != 5*time.Second {
					t.Errorf("%s: held until %v, the token until %v, %v; want about %v for the token", name, h.Deadline, h.Exp, err, want)
				}
				c.heard()
			}
		})
	}
}

// An edge that dies with the right to send the outbox keeps the others waiting no longer
// because the lead of the sale's clock has ended since.
func TestOutboxAfterALead(t *testing.T) {
	const lease = 5 * time.Second
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		claims := func(owner string) bool {
			t.Helper()
			_, ours, err := c.Journal().AcquireLease(stocktest.Soon(t), "s", owner, lease, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			return ours
		}
		c.heard()
		if !claims("A") || claims("B") {
			t.Fatal("not the first one has the right")
		}
		c.jump(-2 * time.Hour)
		if claims("B") {
			t.Error("another one has the right after a step")
		}
		c.heard()
		if c.step(lease); c.lead() != 0 || !claims("B") {
			t.Errorf("with a lead of %d s the right of an edge that is dead goes on", c.lead())
		}
	})
}
