package edge_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// BenchmarkRecovery measures how long a sale with two edges stands still beyond what Redis
// needs by itself: from the moment at which the new primary takes commands until both edges
// have sold. docs/guarantees.md has its numbers.
func BenchmarkRecovery(b *testing.B) {
	b.Run("clean failover", func(b *testing.B) { benchmarkFailover(b, 0) })
	b.Run("failover that lacks 10000 operations", func(b *testing.B) { benchmarkFailover(b, 10_000) })
	b.Run("restart", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			s := redistest.Start(b, redistest.Config("appendonly yes", "appendfsync always"))
			at := &stocktest.Network{Addr: s.Addr()}
			stocktest.Load(b, stocktest.OpenStore(b, stocktest.Options(s)), stocktest.OpenSale("s", 1_000_000))
			edges := []*edge.Edge{benchmarkEdge(b, s, at), benchmarkEdge(b, s, at)}
			s.Kill()
			s.Restart() // returns when it has loaded
			b.StartTimer()
			bothSell(b, edges)
		}
	})
}

func benchmarkFailover(b *testing.B, operations int) {
	for b.Loop() {
		b.StopTimer()
		primary := redistest.Start(b)
		replica := stocktest.Replica(b, primary)
		at := &stocktest.Network{Addr: primary.Addr()}
		stocktest.Load(b, stocktest.OpenStore(b, stocktest.Options(primary)), stocktest.OpenSale("s", 1_000_000))
		edges := []*edge.Edge{benchmarkEdge(b, primary, at), benchmarkEdge(b, primary, at)}
		stocktest.Replicated(b, edges[0].Store.Shard())
		follow := func(of ...any) {
			if err := replica.Client().Do(stocktest.Soon(b), append([]any{"REPLICAOF"}, of...)...).Err(); err != nil {
				b.Fatal(err)
			}
		}
		follow("127.0.0.1", "1")
		var buyers sync.WaitGroup
		for k := range 64 {
			buyers.Go(func() {
				for i := k; i < operations; i += 64 {
					id := fmt.Sprint("r", i)
					stocktest.MustHold(b, edges[i%2], id, id, 1)
				}
			})
		}
		buyers.Wait()
		primary.Kill()
		follow("NO", "ONE")
		b.StartTimer()
		at.Lead(replica.Addr())
		bothSell(b, edges)
		b.StopTimer()
		if held := stocktest.CellA(b, edges[0].Store).Held; held != int64(operations)+4 {
			b.Fatalf("%d units are held after the failover, want %d", held, operations+4)
		}
		b.StartTimer()
	}
}

// benchmarkEdge starts an edge that has sold.
func benchmarkEdge(b *testing.B, s *redistest.Server, at *stocktest.Network) *edge.Edge {
	o := stocktest.Options(s)
	o.Dialer = at.Dial
	e := stocktest.NewEdge(b, o, edge.Options{})
	e.Start()
	if err := e.Refresh(stocktest.Soon(b)); err != nil {
		b.Fatal(err)
	}
	stocktest.Eventually(b, "an edge that follows the journal", func() bool { _, ok := e.Followed("s"); return ok })
	id := fmt.Sprintf("first-%p", e)
	stocktest.MustHold(b, e, id, id, 1)
	return e
}

// bothSell returns when each edge has sold, by buyers who ask again every 10 ms.
func bothSell(b *testing.B, edges []*edge.Edge) {
	var each sync.WaitGroup
	for _, e := range edges {
		each.Go(func() {
			id := fmt.Sprintf("again-%p", e)
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for ; ; <-pace.C {
				if _, no, err := stocktest.Hold(stocktest.Soon(b), e, id, id, 1); no == nil && err == nil {
					return
				}
			}
		})
	}
	each.Wait()
}
