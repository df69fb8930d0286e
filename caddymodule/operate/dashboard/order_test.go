package dashboard

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// The page opens with the first sale, so their order does not follow the map of the catalogue.
func TestOrderOfSales(t *testing.T) {
	now := time.Now()
	listing := func(id string, status sale.Status, starts, ends time.Duration) placed {
		l := &edge.Listing{Sale: &sale.Sale{ID: id, StartsAt: now.Add(starts), EndsAt: now.Add(ends)}, Status: status}
		return placed{l, rank(l, now)}
	}
	want := []placed{
		listing("early", sale.Open, -2*time.Hour, time.Hour),
		listing("a", sale.Open, -time.Hour, time.Hour),
		listing("b", sale.Paused, -time.Hour, 2*time.Hour),
		listing("soon", sale.Open, time.Hour, 2*time.Hour),
		listing("x-later", sale.Draft, 2*time.Hour, 3*time.Hour),
		listing("y-later", sale.Open, 2*time.Hour, 3*time.Hour),
		listing("c-ended", sale.Open, -2*time.Hour, -time.Hour),
		listing("d-ended", sale.Closed, -3*time.Hour, -time.Hour),
		listing("long ago", sale.Closed, -3*time.Hour, -2*time.Hour),
	}
	for range 100 {
		got := slices.Clone(want)
		rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		if slices.SortFunc(got, compare); !slices.Equal(got, want) {
			for _, l := range got {
				t.Log(l.Sale.ID)
			}
			t.Fatal("the sales are in another order")
		}
	}
}
