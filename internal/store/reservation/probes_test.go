package reservation_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func ofGate(name string) func(*reservation.ReserveRequest) {
	return func(c *reservation.ReserveRequest) { c.Gate = name }
}

// due takes the probes that are due now.
func (c *clocked) due(gate string, p reservation.ProbePlan) []string {
	c.t.Helper()
	var ids []string
	for offset := 0; ; {
		due, next, err := c.TakeDueProbes(stocktest.Soon(c.t), "s", gate, p, offset)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, d := range due {
			ids = append(ids, d.ID)
		}
		if next == 0 {
			return ids
		}
		offset = next
	}
}

// Who asks claims first: the others do not ask. The pauses double up to the longest,
// and at some time a person must look.
func TestClaimProbes(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		var holds []reservation.Hold
		for i, gate := range []string{"main", "other", "main", ""} {
			id := fmt.Sprint("r", i+1)
			holds = append(holds, c.reserve(id, ofGate(gate), withRef("order-"+id)))
			c.step(time.Millisecond)
			c.must("in_doubt")(c.Doubt(stocktest.Soon(t), "s", id, "timeout"))
		}
		c.reserve("held", ofGate("main"))
		due, next, err := c.TakeDueProbes(stocktest.Soon(t), "s", "main", stocktest.Plan, 0)
		if err != nil || next != 0 || len(due) != 2 || due[0].ID != "r1" || due[0].Ref != "order-r1" || !due[0].Deadline.Equal(holds[0].Deadline) || due[1].ID != "r3" {
			t.Fatalf("due are %+v, %d, %v", due, next, err)
		}
		for i, s := range []struct {
			after time.Duration
			want  []string
		}{
			{0, nil}, {999 * time.Millisecond, nil},
			{time.Millisecond, []string{"r1", "r3"}},                                 // 1 s
			{1999 * time.Millisecond, nil}, {time.Millisecond, []string{"r1", "r3"}}, // 2 s
			{2999 * time.Millisecond, nil}, {time.Millisecond, []string{"r1", "r3"}}, // not 4 s
			{time.Hour, nil}, // four tries are over
		} {
			c.step(s.after)
			if got := c.due("main", stocktest.Plan); !slices.Equal(got, s.want) {
				t.Errorf("step %d: due are %v, want %v", i+1, got, s.want)
			}
			stocktest.Balanced(t, c.server.client, c.Store, "s")
		}
		if got := c.due("", stocktest.Plan); !slices.Equal(got, []string{"r4"}) {
			t.Errorf("of the gate without a name %v are due", got)
		}
		if r, err := c.Reservation(stocktest.Soon(t), "r1"); err != nil || r.Probes != 4 || r.State != record.InDoubt || r.Gate != "main" {
			t.Errorf("the record is %+v, %v", r, err)
		}
		longer := stocktest.Plan
		longer.Tries = 5
		if got := c.due("main", longer); !slices.Equal(got, []string{"r1", "r3"}) {
			t.Errorf("with a try more %v are due", got)
		}
		for _, p := range []reservation.ProbePlan{{}, {Wait: time.Second, LongestWait: time.Second}, {Tries: 1, LongestWait: time.Second}} {
			if _, _, err := c.TakeDueProbes(stocktest.Soon(t), "s", "main", p, 0); err == nil {
				t.Errorf("the plan %+v is taken", p)
			}
		}
	})
}

// More than one call can look at are claimed one page after the other.
func TestClaimManyProbes(t *testing.T) {
	eachClock(t, 250, func(t *testing.T, c *clocked) {
		for i := range 201 {
			id := fmt.Sprint("r", i)
			c.reserve(id, ofGate("main"))
			c.must("in_doubt")(c.Doubt(stocktest.Soon(t), "s", id, ""))
		}
		if got := c.due("main", stocktest.Plan); len(got) != 201 {
			t.Errorf("%d are due, want 201", len(got))
		}
		if got := c.due("main", stocktest.Plan); len(got) != 0 {
			t.Errorf("%d are due twice", len(got))
		}
	})
}

// What an answer of the shop does. An absence counts where it was asked about after the
// deadline, once for each claim, and the second one releases.
func TestProbed(t *testing.T) {
	type step struct {
		after time.Duration
		claim bool
		says  reservation.ProbeAnswer
		want  record.State
	}
	const absent, present, unknown = reservation.ProbeAbsent, reservation.ProbePresent, reservation.ProbeUnknown
	tests := map[string][]step{
		"it has the order":     {{0, true, present, "confirmed"}, {0, false, absent, "confirmed"}},
		"at last it has":       {{time.Hour, true, absent, "in_doubt"}, {time.Hour, true, present, "confirmed"}},
		"it does not say":      {{time.Hour, true, unknown, "in_doubt"}, {time.Hour, true, unknown, "in_doubt"}, {time.Hour, true, unknown, "in_doubt"}},
		"it has not, twice":    {{time.Hour, true, absent, "in_doubt"}, {time.Hour, true, absent, "released"}, {0, false, absent, "released"}},
		"a repeat is no proof": {{time.Hour, true, absent, "in_doubt"}, {0, false, absent, "in_doubt"}, {time.Hour, false, absent, "in_doubt"}, {0, true, absent, "released"}},
		"no edge asked":        {{time.Hour, false, absent, "in_doubt"}, {time.Hour, false, absent, "in_doubt"}},
		"too soon": {
			{0, true, absent, "in_doubt"}, {10 * time.Second, true, absent, "in_doubt"}, {49999 * time.Millisecond, true, absent, "in_doubt"},
			{time.Millisecond, false, absent, "in_doubt"}, {time.Hour, true, absent, "in_doubt"}, {time.Hour, true, absent, "released"},
		},
		"present after released": {{time.Hour, true, absent, "in_doubt"}, {time.Hour, true, absent, "released"}, {0, false, present, "confirmed"}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			eachClock(t, 3, func(t *testing.T, c *clocked) {
				c.reserve("r1", ofGate("main"))
				c.must("in_doubt")(c.Doubt(stocktest.Soon(t), "s", "r1", ""))
				for i, s := range steps {
					c.step(s.after)
					if s.claim && len(c.due("main", reservation.ProbePlan{Wait: time.Second, LongestWait: time.Second, Tries: 9})) != 1 {
						t.Fatalf("step %d: it is not due", i+1)
					}
					if got, err := c.Probed(stocktest.Soon(t), "s", "r1", s.says, "status_404"); err != nil || got != s.want {
						t.Fatalf("step %d: %s, %v; want %s", i+1, got, err, s.want)
					}
					stocktest.Balanced(t, c.server.client, c.Store, "s")
				}
			})
		})
	}
}

// A probe answer that comes when the reservation has ended, or about an unknown one.
func TestProbedTooLate(t *testing.T) {
	eachClock(t, 1, func(t *testing.T, c *clocked) {
		if _, err := c.Probed(stocktest.Soon(t), "s", "unknown", reservation.ProbePresent, ""); err != reservation.ErrNotFound {
			t.Errorf("unknown: %v", err)
		}
		c.reserve("r1")
		for _, v := range []reservation.ProbeAnswer{reservation.ProbeAbsent, reservation.ProbeUnknown} {
			c.must("held")(c.Probed(stocktest.Soon(t), "s", "r1", v, ""))
		}
		c.must("in_doubt")(c.Doubt(stocktest.Soon(t), "s", "r1", ""))
		if _, err := c.Release(stocktest.Soon(t), "s", "r1", reservation.SourceProbe, ""); !errors.As(err, new(*reservation.TooSoonError)) {
			t.Errorf("before the deadline a probe's word releases: %v", err)
		}
	})
}
