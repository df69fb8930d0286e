//go:build !race

// One goroutine moves large slices here, of which the race detector looks at each byte.

package fence

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/reservation"
)

// An edge remembers the newest promises of each sale, and no more than its bound of all sales.
func TestOwnIsBoundedInLargeSales(t *testing.T) {
	count := newRoom(maxOwn)
	sales := make([]promised, 7)
	for i := range int64(maxOwnOfSale + 5) {
		for j := range sales {
			sales[j].add(count, movementNumber{1, i}, reservation.Promise{})
		}
	}
	if n := count.held.Load(); n > maxOwn {
		t.Errorf("%d promises are remembered, at most %d may be", n, maxOwn)
	}
	for j := range sales {
		if n := len(sales[j].after(movementNumber{1, maxOwnOfSale + 2})); n != 2 {
			t.Errorf("sale %d has %d of the two newest promises", j, n)
		}
	}
	before := count.held.Load()
	sales[0].forget(movementNumber{1, maxOwnOfSale + 2})
	if n := before - count.held.Load(); n != 2 || len(sales[0].after(movementNumber{1, maxOwnOfSale + 2})) != 0 {
		t.Errorf("%d promises are forgotten, want 2", n)
	}
}

// What was promised of earlier sales is forgotten before what is promised of a later one.
func TestALaterSaleHasRoomBesideLargeOnes(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		want  int
	}{
		"soon":          {0, 16_000},
		"after a while": {unusedFor + time.Second, maxOwnOfSale},
	} {
		t.Run(name, func(t *testing.T) {
			count := newRoom(maxOwn)
			count.later(0)
			sales := make([]promised, maxOwn/maxOwnOfSale+1)
			for j := range sales {
				if j == len(sales)-1 {
					count.later(test.after)
				}
				for i := range int64(maxOwnOfSale) {
					sales[j].add(count, movementNumber{1, i}, reservation.Promise{})
				}
			}
			last := &sales[len(sales)-1]
			if n := len(last.after(nowhere)); n < test.want {
				t.Errorf("%d promises of the later sale are remembered, want %d", n, test.want)
			}
			if n := count.held.Load(); n > maxOwn {
				t.Errorf("%d promises are remembered, at most %d may be", n, maxOwn)
			}
			for j := range sales {
				if found := sales[j].after(movementNumber{1, maxOwnOfSale - 2}); len(found) != 1 {
					t.Errorf("sale %d has %d of its newest promise", j, len(found))
				}
			}
		})
	}
}
