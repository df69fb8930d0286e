//go:build shops

package shoptest_test

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// samples is how many orders, and how many requests that browse, each side is measured with.
const samples = 40

// What the gate adds to the time of an order and of a request that browses: run it by name, with
// -v, on a machine that does nothing else. The shop alone and the shop behind the gate take turns.
func TestVendureLatency(t *testing.T) {
	v := startVendure(t, "SNK-1=100000")
	item := v.variant("SNK-1")
	g := startGates(t, 1, vendureDir+"/Caddyfile", v.addr, item, 100_000, "VENDURE_KEY="+v.administrator())
	latencies(t, []string{v.url, g.urls[0]},
		func(ctx context.Context, b *browser, n int) end { return buyInVendure(item)(ctx, b, n) },
		func(ctx context.Context, b *browser) (reply, error) {
			return b.once(ctx, "POST", "/shop-api", graphQL(`{products{items{name variants{sku stockLevel}}}}`, nil))
		})
}

func TestMedusaLatency(t *testing.T) {
	m := startMedusa(t, "SNK-1=100000")
	item := m.variant("SNK-1")
	g := startGates(t, 1, medusaDir+"/Caddyfile", m.addr, item, 100_000, "MEDUSA_KEY="+m.key)
	latencies(t, []string{m.url, g.urls[0]},
		func(ctx context.Context, b *browser, n int) end { return m.buy(item)(ctx, b, n) },
		func(ctx context.Context, b *browser) (reply, error) {
			b.header.Set("X-Publishable-Api-Key", m.key)
			return b.once(ctx, "GET", "/store/products", "")
		})
}

// latencies measures at the bases in turn, and logs the medians.
func latencies(t *testing.T, bases []string, buy func(ctx context.Context, b *browser, n int) end, look func(ctx context.Context, b *browser) (reply, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	orders, looks := make([][]time.Duration, len(bases)), make([][]time.Duration, len(bases))
	for i := range samples + 5 {
		for k, base := range bases {
			b := newBrowser(base)
			if e := buy(ctx, b, i*len(bases)+k); e != ordered {
				t.Fatal(e)
			}
			began := time.Now()
			if r, err := look(ctx, b); err != nil || r.status != 200 {
				t.Fatalf("%v %s", err, r.body)
			}
			if i >= 5 { // the first ones warm the shop
				orders[k], looks[k] = append(orders[k], b.paid), append(looks[k], time.Since(began))
			}
			b.close()
		}
	}
	for k, name := range []string{"alone", "behind the gate"} {
		t.Log(fmt.Sprintf("%s: an order p50 %v, p90 %v; a look p50 %v, p90 %v", name,
			quantile(orders[k], .5), quantile(orders[k], .9), quantile(looks[k], .5), quantile(looks[k], .9)))
	}
}
