package fence

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/reservation"
)

// An edge remembers the newest promises of each sale, and no more than its bound of all sales.
func TestOwnIsBounded(t *testing.T) {
	var count atomic.Int64
	sales := make([]own, 7)
	for i := range int64(maxOwnOfSale + 5) {
		for j := range sales {
			sales[j].add(&count, i, reservation.Promise{})
		}
	}
	if n := count.Load(); n > maxOwn {
		t.Errorf("%d promises are remembered, at most %d may be", n, maxOwn)
	}
	for j := range sales {
		if n := len(sales[j].after(maxOwnOfSale + 2)); n != 2 {
			t.Errorf("sale %d has %d of the two newest promises", j, n)
		}
	}
	before := count.Load()
	sales[0].forget(&count, maxOwnOfSale+2)
	if n := before - count.Load(); n != 2 || len(sales[0].after(maxOwnOfSale+2)) != 0 {
		t.Errorf("%d promises are forgotten, want 2", n)
	}
}

// The tail keeps the newest entries within its bytes, replaces those of another history, and
// gives them in pieces.
func TestTailIsBounded(t *testing.T) {
	var bytes tailBytes
	var of tail
	text := strings.Repeat("x", 1<<20)
	for i := int64(1); i <= 100; i++ {
		of.add(&bytes, i, i, "1", text)
	}
	if n := bytes.Load(); n > maxTailBytes || n < maxTailBytes-2<<20 {
		t.Errorf("%d bytes are kept, the bound is %d", n, maxTailBytes)
	}
	of.add(&bytes, 99, 99, "1", "other")
	if n := of.last(); n != 99 {
		t.Errorf("the newest entry is %d, want 99", n)
	}
	pieces := of.after(96)
	if len(pieces) != 3 || len(pieces[0]) != 3 || pieces[2][0] != "99" || pieces[2][2] != "other" {
		t.Errorf("the entries after 96 come in %d pieces", len(pieces))
	}
	if pieces := of.after(99); len(pieces) != 1 || pieces[0] != nil {
		t.Errorf("after the newest entry there is %v", pieces)
	}
	of.cutAfter(90)
	if of.last() != 90 {
		t.Errorf("after the cut the newest entry is %d, want 90", of.last())
	}
}
