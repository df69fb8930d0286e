//go:build shops

package shoptest_test

import (
	"context"
	"os"
	"strconv"
	"testing"
)

// buyers is how many come: $BUYERS, or so many that the shop alone oversells.
func buyers(t testing.TB, or int) int {
	t.Helper()
	text := os.Getenv("BUYERS")
	if text == "" {
		return or
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("BUYERS is %q", text)
	}
	return n
}

// The shop alone: what the gate is for. Run it by name, with -v.
func TestVendureAlone(t *testing.T) {
	v := startVendure(t, "SNK-1=20")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := crowd(ctx, buyers(t, 100), []string{v.url}, buyInVendure(v.variant("SNK-1")))
	orders, units := v.sold("SNK-1")
	t.Logf("%d orders for %d of 20 units\n%s", orders, units, r)
	if got := r.ends()[ordered]; got != orders {
		t.Errorf("%d buyers were told that they have an order, the shop has %d", got, orders)
	}
}

func TestMedusaAlone(t *testing.T) {
	m := startMedusa(t, "SNK-1=20")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := crowd(ctx, buyers(t, 60), []string{m.url}, m.buy(m.variant("SNK-1")))
	orders, units := m.sold("SNK-1")
	t.Logf("%d orders for %d of 20 units\n%s", orders, units, r)
	if got := r.ends()[ordered]; got != orders {
		t.Errorf("%d buyers were told that they have an order, the shop has %d", got, orders)
	}
}
