package edge_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// rush lets n buyers hold one unit each, at once, over all edges, and counts the
// answers: "" for a hold.
func rush(t *testing.T, edges []*edge.Edge, n int, buyer func(i int) string) map[sale.Reason]int {
	t.Helper()
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		answers = map[sale.Reason]int{}
	)
	for i := range n {
		wg.Go(func() {
			_, refusal, err := stocktest.Hold(context.Background(), edges[i%len(edges)], fmt.Sprint("r", i), buyer(i), 1)
			reason := sale.Reason("")
			switch {
			case err != nil:
				reason = sale.Reason(err.Error())
			case refusal != nil:
				reason = refusal.Reason
			}
			mu.Lock()
			defer mu.Unlock()
			answers[reason]++
		})
	}
	wg.Wait()
	return answers
}

func TestCrowd(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		edges := []*edge.Edge{stocktest.Selling(t, stocktest.Options(b), 50), stocktest.Ready(t, stocktest.Options(b))}
		got := rush(t, edges, 500, func(i int) string { return fmt.Sprint("buyer ", i) })
		if got[""] != 50 || got[sale.AllHeld] != 450 {
			t.Errorf("the answers are %v, want 50 holds and 450 all_held", got)
		}
		if c := stocktest.CellA(t, edges[0].Store); c.Held != 50 || c.Available != 0 {
			t.Errorf("the cell is %+v", c)
		}
		stocktest.Balanced(t, b.Client(), edges[0].Store, "s")
	})
}

func TestCrowdOfOneBuyer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		edges := []*edge.Edge{stocktest.Selling(t, stocktest.Options(b), 50, stocktest.PerBuyer(3)), stocktest.Ready(t, stocktest.Options(b))}
		got := rush(t, edges, 200, func(i int) string { return fmt.Sprint("buyer ", i%4) })
		if got[""] != 4*3 || got[sale.Pending] != 200-4*3 {
			t.Errorf("the answers are %v, want 12 holds and 188 pending", got)
		}
		stocktest.Balanced(t, b.Client(), edges[0].Store, "s")
	})
}

// Many attempts that end in every way at once leave nothing behind.
func TestCrowdThatSettles(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		edges := []*edge.Edge{stocktest.Selling(t, stocktest.Options(b), 20, stocktest.PerBuyer(5)), stocktest.Ready(t, stocktest.Options(b))}
		var wg sync.WaitGroup
		seed := draw.Seed(t)
		for i := range 300 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				id, ctx := fmt.Sprint("r", i%200), context.Background() // some ids twice
				e := edges[r.IntN(2)]
				stocktest.Hold(ctx, e, id, fmt.Sprint("buyer ", i%10), 1)
				for range r.IntN(3) {
					switch r.IntN(4) {
					case 0:
						e.ConfirmEventually(ctx, "s", id, "")
					case 1:
						e.ReleaseEventually(ctx, "s", id, reservation.SourceShop, "")
					case 2:
						e.DoubtEventually(ctx, "s", id, "")
					case 3:
						e.Store.Adjust(ctx, "s", fmt.Sprint("j", r.IntN(9)), "a", 1, "")
					}
				}
			})
		}
		wg.Wait()
		stocktest.Balanced(t, b.Client(), edges[0].Store, "s")
	})
}
