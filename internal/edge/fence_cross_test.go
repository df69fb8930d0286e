package edge_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// What one edge reserved another one has confirmed, and no journal has told either: each is told again
// to the new server, whichever edge comes first.
func TestOutcomesOfOtherEdgesAreToldAgain(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a, b := p.link(), p.link()
	stocktest.MustHold(t, a.Edge, "r0", "Ann", 1)
	stocktest.MustHold(t, b.Edge, "q0", "Bob", 1)
	p.replicas(a)
	p.blind()
	p.holds(a, "wa")
	p.holds(b, "wb")
	for id, by := range map[string][2]*linked{"r1": {a, b}, "r2": {b, a}} {
		stocktest.MustHold(t, by[0].Edge, id, "buyer "+id, 1)
		if _, err := by[1].ConfirmEventually(stocktest.Soon(t), "s", id, ""); err != nil {
			t.Fatal(err)
		}
	}
	a.Cut()
	b.Cut()
	p.primary.Kill()
	p.promote()
	a.Lead(p.replica.Addr())
	b.Lead(p.replica.Addr())
	p.holds(a, "xa")
	p.holds(b, "xb")
	if r, err := fence.Read(stocktest.Soon(t), a.Store.Shard(), "s"); err != nil || r.Fenced || r.Missing != 0 || r.Absent != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	p.states(a.Store, map[string]record.State{"r1": record.Confirmed, "r2": record.Confirmed})
	stocktest.Balanced(t, p.replica.Client(), a.Store, "s")
}

// An edge whose promises may follow from what others tell waits for these, and learns how many there
// are. What it cannot keep then is missing, and it does not count as one that did not come.
func TestAnEdgeWaitsForWhatOthersTell(t *testing.T) {
	t.Parallel()
	for last, late := range map[string]time.Duration{"lacks": time.Hour, "beat": 0} { // the second one does not wait
		t.Run(last, func(t *testing.T) {
			b := newBeats(t)
			b.fenced()
			seq := b.seq
			for _, step := range []struct {
				edge, does string
				own        int
				others     int64
			}{
				{"a", "ready", 2, 0},
				{"b", "ready", 1, 1},
				{"a", "waits", 2, 1},
				{"b", "beat", 0, 0},
				{"b", "told", 0, 0},
				{"a", "beat", 0, 0},
			} {
				r := b.say(&shard.Beat{Edge: step.edge, Does: step.does, Known: seq, Own: step.own, Wait: time.Hour})
				if r.Code() != "fenced" || over(r) || r.Number(7) != step.others {
					t.Fatalf("%s of %s gives %v, want %d others", step.does, step.edge, r, step.others)
				}
			}
			if r := b.say(&shard.Beat{Edge: "a", Does: last, Known: seq, Own: 2, Wait: late}); !over(r) {
				t.Errorf("the last word gives %v", r)
			}
			if r := b.report(); r.Fenced || r.Missing != 2 || r.Absent != 0 {
				t.Errorf("%+v, want 2 that are missing", r)
			}
		})
	}
}

// An edge that waits tells again once the shard has got something since: others wait for it, as what
// they need may come of that.
func TestAWaitingEdgeMayTellMore(t *testing.T) {
	b := newBeats(t)
	b.fenced()
	seq := b.seq
	s := stocktest.OpenStore(t, b.p.options())
	say := func(edge, does string, known int64, own int, others int64) shard.Reply {
		t.Helper()
		r := b.say(&shard.Beat{Edge: edge, Does: does, Known: known, Own: own, Wait: time.Hour})
		if r.Code() != "fenced" || over(r) || r.Number(7) != others {
			t.Fatalf("%s of %s gives %v, want %d others", does, edge, r, others)
		}
		return r
	}
	say("a", "ready", seq, 2, 0)
	say("b", "ready", seq, 1, 1)
	say("b", "waits", seq, 1, 1)
	pass := say("a", "beat", seq, 0, 0).Text(2)
	if err := s.SetStatus(shard.WithPass(stocktest.Soon(t), pass), "s", sale.Paused, "what a tells"); err != nil {
		t.Fatal(err)
	}
	say("a", "ready", seq, 1, 1)
	say("a", "waits", seq+1, 1, 1)
	say("b", "beat", seq, 0, 0) // a has tried that, b has not
	say("b", "waits", seq+1, 1, 0)
	say("a", "beat", seq, 0, 0)
}
