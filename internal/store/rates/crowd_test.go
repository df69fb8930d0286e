package rates_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/rates"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// When all come at once, on two edges, exactly the burst passes. Keys are independent.
func TestSharedRateIsExactAcrossEdges(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		const burst, more = 40, 60
		edges := []*edge.Edge{rateEdge(t, rateOptions(b, b.Addr()), nil), rateEdge(t, rateOptions(b, b.Addr()), nil)}
		rate := rates.NewRate("main {client_ip}", burst, 24*time.Hour, burst)
		var passed [2]atomic.Int64
		var group sync.WaitGroup
		begin := make(chan struct{})
		var begun time.Time
		for i := range 2 * (burst + more) {
			group.Go(func() {
				<-begin
				key := i % 2
				over, wait, err := edges[i/2%2].Rates().Take(stocktest.Soon(t), []rates.Try{{Rate: rate, Key: strconv.Itoa(key)}})
				switch {
				case err != nil:
					t.Error(err)
				case over < 0:
					passed[key].Add(1)
				case wait <= 0 || wait > 24*time.Hour/burst+time.Since(begun): // another attempt may have heard it later
					t.Errorf("wait %v", wait)
				}
			})
		}
		begun = time.Now()
		close(begin)
		group.Wait()
		for key := range passed {
			if n := passed[key].Load(); n != burst {
				t.Errorf("%d attempts of key %d passed, want %d", n, key, burst)
			}
		}
	})
}
