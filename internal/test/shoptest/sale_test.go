//go:build shops

package shoptest_test

import (
	"context"
	"net/http"
	"testing"
)

const units = 20

// Starting a shop takes long, so one start serves both: a crowd buys, then hostile clients try it.
func TestVendure(t *testing.T) {
	v := startVendure(t, "SNK-1=100000,CAP-1=100000")
	t.Run("its requests", v.lists)
	t.Run("sells", v.sells)
	t.Run("hostile clients", v.hostile)
	t.Run("learned from a recording", v.learned)
}

func TestMedusa(t *testing.T) {
	m := startMedusa(t, "SNK-1=100000,CAP-1=100000,ONE-1=1")
	t.Run("its requests", m.lists)
	t.Run("sells", m.sells)
	t.Run("hostile clients", m.hostile)
	t.Run("learned from a recording", m.learned)
}

// Five hundred come for twenty units, to two edges: twenty orders, and every buyer is told.
func (v *vendure) sells(t *testing.T) {
	g := v.sellsBehind(t, vendureDir+"/Caddyfile", units, buyers(t, 500))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g.redis.Kill()
	browse(ctx, t, g, "POST", "/shop-api", graphQL(`{products{items{name variants{sku stockLevel}}}}`, nil))
	browse(ctx, t, g, "GET", "/shop-api?query={products{items{name}}}", "")
}

func (m *medusa) sells(t *testing.T) {
	g := m.sellsBehind(t, medusaDir+"/Caddyfile", units, buyers(t, 500))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g.redis.Kill()
	browse(ctx, t, g, "GET", "/store/products", "", "X-Publishable-Api-Key", m.key)
}

// sellsBehind lets a crowd buy behind a configuration, and compares what was sold with what the shop has sold
// since.
func (v *vendure) sellsBehind(t *testing.T, caddyfile string, units, buyers int) *gates {
	t.Helper()
	before := v.orders()
	ordersBefore, soldBefore := v.sold("SNK-1")
	item := v.variant("SNK-1")
	g := startGates(t, 2, caddyfile, v.addr, item, units, "VENDURE_KEY="+v.administrator())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := crowd(ctx, buyers, g.urls, buyInVendure(item))
	orders, sold := v.sold("SNK-1")
	checkSale(t, r, units, orders-ordersBefore, sold-soldBefore)
	g.reconcile(without(v.orders(), before))
	return g
}

func (m *medusa) sellsBehind(t *testing.T, caddyfile string, units, buyers int) *gates {
	t.Helper()
	before := m.orders()
	ordersBefore, soldBefore := m.sold("SNK-1")
	item := m.variant("SNK-1")
	g := startGates(t, 2, caddyfile, m.addr, item, units, "MEDUSA_KEY="+m.key)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := crowd(ctx, buyers, g.urls, m.buy(item))
	orders, sold := m.sold("SNK-1")
	checkSale(t, r, units, orders-ordersBefore, sold-soldBefore)
	g.reconcile(without(m.orders(), before))
	return g
}

func checkSale(t *testing.T, r crowdReport, units, orders, sold int) {
	t.Helper()
	t.Logf("%d orders for %d of %d units\n%s", orders, sold, units, r)
	ends := r.ends()
	if orders != units || sold != units {
		t.Errorf("the shop has %d orders for %d units, want %d", orders, sold, units)
	}
	if ends[ordered] != units || ends[ordered]+ends[soldOut] != len(r.visits) {
		t.Errorf("not every buyer was told what is so: %v", ends)
	}
}

// browse asks for something that is no order. The shop's own answer must come.
func browse(ctx context.Context, t *testing.T, g *gates, method, path, body string, header ...string) {
	t.Helper()
	for _, url := range g.urls {
		b := newBrowser(url)
		for i := 0; i < len(header); i += 2 {
			b.header.Set(header[i], header[i+1])
		}
		a, err := b.once(ctx, method, path, body)
		if err != nil || a.status != http.StatusOK || a.refusal != "" {
			t.Errorf("%s %s without Redis: %v %d %s", method, path, err, a.status, a.body)
		}
		b.close()
	}
}
