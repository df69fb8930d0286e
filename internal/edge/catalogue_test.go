package edge_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// A catalogue of any sales, empty ones among them, says for each item which of them list
// it, in the order of their start and then of their ids.
func TestCatalogueListing(t *testing.T) {
	for seed := range uint64(300) {
		draw := rand.New(rand.NewPCG(seed, 1))
		sales := make(map[string]*edge.Listing)
		want := make(map[string][]*edge.Listing)
		for range draw.IntN(7) {
			id := fmt.Sprint("s", draw.IntN(20))
			l := &edge.Listing{Sale: &sale.Sale{ID: id, StartsAt: time.Unix(draw.Int64N(4), 0)}}
			names := draw.Perm(12)[:draw.IntN(6)]
			for len(names) > 0 {
				item := sale.Item{SKU: fmt.Sprint("sku", names[0])}
				n := 1 + draw.IntN(len(names))
				for _, i := range names[1:n] {
					item.IDs = append(item.IDs, fmt.Sprint("sku", i))
				}
				names = names[n:]
				l.Sale.Items = append(l.Sale.Items, item)
			}
			sales[id] = l
		}
		for l := range maps.Values(sales) {
			for _, item := range l.Sale.Items {
				for name := range item.Names {
					want[name] = append(want[name], l)
				}
			}
		}
		c := edge.NewCatalogue(sales)
		for i := range 13 {
			sku := fmt.Sprint("sku", i)
			slices.SortFunc(want[sku], func(a, b *edge.Listing) int {
				return cmp.Or(a.Sale.StartsAt.Compare(b.Sale.StartsAt), strings.Compare(a.Sale.ID, b.Sale.ID))
			})
			if got := c.Listing(sku); !slices.Equal(got, want[sku]) {
				t.Fatalf("seed %d: %s is listed by %v, want %v", seed, sku, ids(got), ids(want[sku]))
			}
		}
	}
}

func ids(all []*edge.Listing) (ids []string) {
	for _, l := range all {
		ids = append(ids, l.Sale.ID)
	}
	return ids
}
