package edge_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// A sale does not sell any more when it is told again what was promised of it: that holds all the same.
func TestPromisesOfASaleThatHasStopped(t *testing.T) {
	t.Parallel()
	for _, status := range []sale.Status{sale.Paused, sale.Closed} {
		t.Run(string(status), func(t *testing.T) {
			p := newPair(t)
			e := p.edge(p.options())
			stocktest.MustHold(t, e, "r0", "Ann", 1)
			stocktest.Replicated(t, e.Store.Shard())
			p.blind()
			p.sells(e, "w")
			stocktest.MustHold(t, e, "r1", "Bob", 1)
			p.primary.Kill()
			// the replica has heard of that only
			meta := e.Store.Shard().ShardKeys("s")[shard.MetaKey]
			if err := p.replica.Client().Do(stocktest.Soon(t), "CONFIG", "SET", "replica-read-only", "no").Err(); err != nil {
				t.Fatal(err)
			}
			if err := p.replica.Client().HSet(stocktest.Soon(t), meta, "status", string(status)).Err(); err != nil {
				t.Fatal(err)
			}
			p.promote()
			stocktest.Eventually(t, "the end of the fence", func() bool {
				r, err := fence.Read(stocktest.Soon(t), e.Store.Shard(), "s")
				return err == nil && !r.Fenced && !r.Ended.IsZero()
			})
			if r, err := fence.Read(stocktest.Soon(t), e.Store.Shard(), "s"); err != nil || r.Missing != 0 || r.Absent != 0 {
				t.Errorf("%+v, %v", r, err)
			}
			confirmed(t, e, "r1")
		})
	}
}

// confirmed checks that the shop's answer confirms a hold.
func confirmed(t *testing.T, e *edge.Edge, id string) {
	t.Helper()
	if got := stocktest.State(t, e.Store, id); got != record.Held {
		t.Errorf("%s is %q, want held", id, got)
	}
	if state, err := e.ConfirmEventually(stocktest.Soon(t), "s", id, "status_200"); err != nil || state != record.Confirmed {
		t.Errorf("the shop has taken %s: %q, %v", id, state, err)
	}
}
