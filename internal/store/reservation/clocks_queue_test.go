package reservation_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// These tests are the rows of docs/failover.md#clocks about the queue. A shop takes one order at a time and
// one a second, and an order waits for a minute.

// waits is an order of edge A that waits while another one is at the shop.
func waits(c *reservation.ReserveRequest) {
	c.Queue = &reservation.QueueOptions{
		Pace: reservation.Pace{Orders: 1, Per: time.Second, AtOnce: 1}, Most: 100, Memory: 1 << 20, Longest: time.Minute, Edge: "A", Gate: "gate", Order: []byte("packed"),
	}
}

func (c *clocked) op(what *lua.Operation, args ...any) shard.Reply {
	c.t.Helper()
	r, _, err := c.Do(stocktest.Soon(c.t), "s", shard.Op(what, args...))
	if r, err = reservation.Judged(what, r, err); err != nil {
		c.t.Fatalf("%s %v: %v", what.Name, args, err)
	}
	return r
}

// turns asks for the turns of edge A, and returns the ids of the orders that have them.
func (c *clocked) turns() (ids []string) {
	c.t.Helper()
	r := c.op(lua.Turn, "A", 3000, 1, 1000, 1, 100, "gate")
	for i := 5; i < len(r); i += 2 {
		if r.Number(i+1) > 0 {
			ids = append(ids, r.Text(i))
		}
	}
	return ids
}

// gets fails the test unless edge A gets the turns of these orders.
func (c *clocked) gets(want ...string) {
	c.t.Helper()
	if got := c.turns(); !slices.Equal(got, want) {
		c.t.Errorf("the turns are %q, want %q", got, want)
	}
}

// sends sends an order for a minute, and fails the test unless its token ends five seconds before,
// by a time of Redis that is so much behind.
func (c *clocked) sends(id string, behind time.Duration) {
	c.t.Helper()
	r := c.op(lua.Send, id, "A", 1, string(record.ModeBackend), time.Minute.Milliseconds(), (5 * time.Second).Milliseconds())
	ends := c.now.Add(time.Minute - behind)
	if got := r.Time(2); got.Sub(ends).Abs() > time.Second {
		c.t.Errorf("%s is held until %v, want %v", id, got, ends)
	}
	if got := r.Time(3); got.Sub(ends.Add(-5*time.Second)).Abs() > time.Second || r.Time(2).Sub(got) != 5*time.Second {
		c.t.Errorf("the token of %s is good until %v, want 5 s before %v", id, got, ends)
	}
	if got := r.Time(5); got.Sub(c.now.Add(-behind)).Abs() > time.Second {
		c.t.Errorf("%s was made at %v, and it is %v", id, got, c.now.Add(-behind))
	}
}

// pass lets seconds pass, in which edges do what they do.
func (c *clocked) pass(seconds int) {
	c.t.Helper()
	for range seconds {
		c.heard()
	}
}

func (c *clocked) confirm(id string) {
	c.t.Helper()
	c.must(record.Confirmed)(c.Confirm(stocktest.Soon(c.t), "s", id, reservation.SourceAnswer, ""))
}

// line fills the shop, and lets orders wait.
func (c *clocked) line(atShop string, ids ...string) {
	c.t.Helper()
	c.heard()
	c.reserve(atShop, waits, inMode(record.ModeBackend))
	for _, id := range ids {
		if h := c.reserve(id, waits, inMode(record.ModeBackend)); h.State != record.Waiting {
			c.t.Fatalf("%s is %s", id, h.State)
		}
	}
	c.gets()
}

// Two hours forward for 2.5 s: the line goes on at its pace, no turn is over early, and what is sent
// meanwhile has a token as if nothing had happened. What waits is not released.
func TestLineForwardAndBack(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.line("r1", "r2", "r3", "r4")
		c.step(time.Second)
		c.confirm("r1")
		c.gets("r2")
		c.jump(2 * time.Hour)
		c.end(0)
		c.gets() // the turn of r2 goes on
		c.sends("r2", 2*time.Hour)
		if st := c.op(lua.Line, "show", 0, ""); st.Number(6) > 5000 {
			t.Errorf("the oldest has waited for %d ms", st.Number(6))
		}
		c.confirm("r2")
		c.gets() // before its pace
		c.step(time.Second)
		c.end(0)
		c.gets("r3")
		c.sends("r3", 2*time.Hour)
		c.pass(1)
		c.jump(-2 * time.Hour)
		c.confirm("r3")
		c.step(late)
		c.gets("r4")
		c.end(0)
		c.sends("r4", 0)
		c.endsIn(time.Minute)
		c.reserve("r5", waits, inMode(record.ModeBackend))
		if p := c.op(lua.Place, "r5"); p.Text(1) != "held" {
			t.Errorf("a new order is %s", p.Text(1))
		}
		c.confirm("r5")
	})
}

// Two hours forward or back for good: turns, pace, the time for which the shop has asked, and how long
// an order may wait are as long as ever.
func TestLineStepsForGood(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": 2 * time.Hour, "back": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			eachClock(t, 9, func(t *testing.T, c *clocked) {
				c.line("r1", "r2", "r3")
				c.step(time.Second)
				c.op(lua.Again, "r1", "A", 0, time.Minute.Milliseconds(), 5000, "gate", "packed", 20_000, 3)
				c.gets() // nothing for 20 s
				c.jump(step)
				c.pass(18)
				c.gets()
				c.pass(3)
				c.gets("r1")
				c.pass(2)
				c.gets()
				c.pass(2) // the turn is over, and given again
				c.gets("r1")
				c.confirm("r1")
				c.pass(30) // r2 and r3 have waited for 56 s
				c.step(4*time.Second + late)
				c.end(2)
				c.must(record.Released)(c.state("r2"))
			})
		})
	}
}

// Where a lead ends, at once or because no hold is left, the line goes on at its pace.
func TestLineAfterALead(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.line("r1", "r2", "r3")
		c.jump(-2 * time.Hour)
		c.step(time.Second)
		c.op(lua.Again, "r1", "A", 0, time.Minute.Milliseconds(), 5000, "gate", "packed", 1000, 3)
		c.step(time.Second)
		c.gets("r1")
		if _, moved, err := c.Align(stocktest.Soon(t), "s", "operator"); err != nil || moved != 3 || c.lead() != 0 {
			t.Fatalf("%d holds moved, %v, and a lead of %d s", moved, err, c.lead())
		}
		if st := c.op(lua.Line, "show", 0, ""); st.Number(6) < 2000 || st.Number(6) > 5000 {
			t.Errorf("the oldest has waited for %d ms", st.Number(6))
		}
		c.step(2 * time.Second)
		c.gets()
		c.step(2 * time.Second)
		c.gets("r1") // its turn was over
		c.confirm("r1")
		c.step(time.Second)
		c.gets("r2")
		c.confirm("r2")
		c.confirm("r3")

		c.jump(-2 * time.Hour)
		c.reserve("r4", waits)
		c.op(lua.Turn, "B", 3000, 1, 1000, 1, 100, "gate")
		c.confirm("r4")
		c.end(0)
		if c.lead() != 0 {
			t.Fatalf("no hold is left, and a lead of %d s", c.lead())
		}
		c.reserve("r5", waits)
		c.step(time.Second)
		c.reserve("r6", waits)
		for id, want := range map[string]string{"r5": "waiting", "r6": "waiting"} {
			if p := c.op(lua.Place, id); p.Text(1) != want {
				t.Errorf("%s is %s, want %s", id, p.Text(1), want)
			}
		}
		c.gets("r5")
		c.confirm("r5")
		c.confirm("r6")
		edges := c.server.client.HGet(stocktest.Soon(t), c.Shard().ShardKeys("s")[shard.QueueKey], "e|B").Val()
		if until, _ := strconv.ParseInt(edges, 10, 64); c.now.Add(time.Minute).UnixMilli() < until {
			t.Errorf("an edge that has stopped is alive until %s, and it is %d", edges, c.now.UnixMilli())
		}
	})
}

// An edge that has just begun cannot tell how late it is: it ends no turn, and takes no step into the
// clock.
func TestTurnsOfAnEdgeThatBegins(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.line("r1", "r2", "r3")
		c.step(time.Second)
		c.confirm("r1")
		c.gets("r2")
		c.jump(2 * time.Hour)
		fresh := stocktest.OpenStore(t, c.server.options)
		r, _, err := fresh.Do(stocktest.Soon(t), "s", shard.Op(lua.Turn, "B", 3000, 0, 1, 9, 100, "gate"))
		if err != nil || len(r) != 5 || r.Number(1) != 1 {
			t.Errorf("an edge that has just begun gets %v, %v", r, err)
		}
		c.end(0)
		c.gets()
		c.sends("r2", 2*time.Hour)
		c.confirm("r2")
		c.confirm("r3")
	})
}

// A server that is promoted may have a clock behind that of its predecessor. What an edge that does not
// come may have sent before the failover is in doubt all the same, and what came after it is not.
func TestLostEdgeAndAClockBehind(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		c.line("r1", "r2")
		c.step(time.Second)
		c.confirm("r1")
		c.step(5 * time.Second) // A has stopped
		if r := c.op(lua.Turn, "B", 3000, 1, 1000, 1, 100, "gate"); len(r) != 7 || r.Text(5) != "r2" {
			t.Fatalf("B gets %v, want the turn of r2", r)
		}
		c.jump(-2 * time.Hour)
		meta := c.Shard().ShardKeys("s")[shard.MetaKey]
		seq, err := c.server.client.HGet(stocktest.Soon(t), meta, "seq").Int64()
		if err != nil {
			t.Fatal(err)
		}
		ended := c.now.UnixMilli()
		if err := c.server.client.HSet(stocktest.Soon(t), meta, "terms", fmt.Sprintf("1:1:aa:1 1:2:bb:%d", seq+1), "fenced", fmt.Sprintf("2 %d %d 0 0 1 %d", ended, ended, seq),
			"absent", fmt.Sprintf("%d B", ended)).Err(); err != nil {
			t.Fatal(err)
		}
		c.step(time.Second)
		c.reserve("r3", waits)
		c.gets("r3")
		c.step(5 * time.Second)
		c.gets("r3") // its turn was over
		for id, want := range map[string]record.State{"r2": record.InDoubt, "r3": record.Held} {
			if got := stocktest.State(t, c.Store, id); got != want {
				t.Errorf("%s is %s, want %s", id, got, want)
			}
		}
	})
}
