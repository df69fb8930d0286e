package judge

import (
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

// An attempt that has waited is refused without another check only for what it was refused for
// before: newer knowledge of stock may be newer than the check.
func TestSameRefusal(t *testing.T) {
	soldOut, later := &sale.Refusal{Reason: sale.SoldOut, SKU: "a"}, &sale.Refusal{Reason: sale.SoldOut, SKU: "a"}
	held, paused := &sale.Refusal{Reason: sale.AllHeld, SKU: "a"}, &sale.Refusal{Reason: sale.PausedSale}
	for _, c := range []struct {
		name       string
		before, no *sale.Refusal
		same       bool
	}{
		{"the first time", nil, soldOut, false},
		{"the same knowledge", soldOut, soldOut, true},
		{"newer knowledge of the same", soldOut, later, false},
		{"sold out that was held", held, soldOut, false},
		{"paused", paused, &sale.Refusal{Reason: sale.PausedSale}, true},
		{"paused that was sold out", soldOut, paused, false},
	} {
		if got := isSame(c.before, c.no); got != c.same {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
