package edge_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// An edge that has seen which sale was deleted says it to the new one under its id, where Redis has
// forgotten it with all else: an order of the deleted one takes no unit.
func TestEmptiedRedisWasDeletedBefore(t *testing.T) {
	for name, again := range map[string]bool{"deleted": false, "deleted, and loaded again": true} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			e := stocktest.NewEdge(t, stocktest.Options(server), edge.Options{})
			ctx := stocktest.Soon(t)
			apply := func(o reservation.ApplyOptions) {
				t.Helper()
				if _, err := e.ApplyUnlessLost(ctx, stocktest.OpenSale("s", 3), o); err != nil {
					t.Fatal(err)
				}
				stocktest.Look(t, e)
			}
			apply(reservation.ApplyOptions{})
			first, err := e.Store.Load(ctx, "s")
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Store.SetStatus(ctx, "s", sale.Closed, "test"); err != nil {
				t.Fatal(err)
			}
			if err := e.Store.Delete(ctx, "s", true); err != nil {
				t.Fatal(err)
			}
			stocktest.Look(t, e)
			if again {
				apply(reservation.ApplyOptions{})
			}
			if err := server.Client().FlushAll(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			stocktest.Look(t, e)
			apply(reservation.ApplyOptions{New: true})
			if deleted, err := server.Client().HGet(ctx, "stockgate:{s.0}:meta", "deleted").Result(); deleted != first.Epoch || err != nil {
				t.Errorf("the new sale says that epoch %q was deleted, want %s: %v", deleted, first.Epoch, err)
			}
		})
	}
}
