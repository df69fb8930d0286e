package mirror_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// How long the shop's Redis is behind a sale, from Redis's answer to the reserve request until the
// key has the number. Run it by name, on a machine that does nothing else.
func BenchmarkLag(b *testing.B) {
	s, own := ledgertest.NewSeller(b, redistest.Start(b), 1_000_000), redistest.Start(b)
	shop := third(b, own)
	start(b, s.Store.Journal(), s, own.Addr())
	until := func(left int64) {
		for shop.Get(ledgertest.Soon(b), "store_a").Val() != text(left) {
			if b.Context().Err() != nil {
				b.Fatal("the shop's Redis does not follow")
			}
		}
	}
	until(1_000_000)
	var lags []time.Duration
	for b.Loop() {
		s.Sell(1) // some of these orders are released
		sold := time.Now()
		stock, err := s.Store.SaleStock(ledgertest.Soon(b), "s")
		if err != nil {
			b.Fatal(err)
		}
		until(stock.Items[0].Available)
		lags = append(lags, time.Since(sold))
	}
	slices.Sort(lags)
	for name, q := range map[string]float64{"p50-ms": .5, "p99-ms": .99, "max-ms": 1} {
		b.ReportMetric(float64(lags[int(q*float64(len(lags)-1))].Microseconds())/1000, name)
	}
}
