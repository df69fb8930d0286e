package lists_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/list"
	"github.com/stockgate/stockgate/internal/store/lists"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// BenchmarkLargestList makes a list of ten million phones in Redis, follows it on an edge, and
// measures both. Then it measures a lookup of a phone that is not listed. Run it with
// -benchtime 1s -v.
func BenchmarkLargestList(b *testing.B) {
	const entries = lists.MaxEntries
	server := redistest.Start(b)
	o := stocktest.Options(server)
	writer := mirror(b, o, "writer's own")
	secret := writer.secret(b)

	started := time.Now()
	var importers sync.WaitGroup
	for half := range 2 {
		importers.Go(func() {
			batch := make([]lists.Entry, 0, 10_000)
			for i := half; i < entries; i += 2 {
				if batch = append(batch, stocktest.Text("phone", phoneNumber(i))); len(batch) == cap(batch) {
					if _, err := lists.New(writer.edge.Store.Shard()).Add(context.Background(), secret, "bad", batch); err != nil {
						b.Error(err)
						return
					}
					batch = batch[:0]
				}
			}
		})
	}
	importers.Wait()
	imported := time.Now()
	memory, err := server.Client().Info(stocktest.Soon(b), "memory").Result()
	if err != nil {
		b.Fatal(err)
	}
	var used string
	for line := range strings.Lines(memory) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "used_memory_human" {
			used = value
		}
	}
	l := mirror(b, o, "bad")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for l.Stats().Filter == 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.Fatal("the list was not read")
		}
	}
	stats := l.Stats()
	b.Logf("%d entries: imported in %v, read by an edge in %v; %s in Redis, %.1f MiB on the edge", stats.Entries,
		imported.Sub(started).Round(time.Second), time.Since(imported).Round(time.Second), used, float64(stats.Filter)/(1<<20))
	if stats.Entries != entries || stats.Filter > 32<<20 {
		b.Errorf("stats %+v", stats)
	}
	for i := 0; i < entries; i += 997 {
		if !l.has(b, list.Phone, phoneNumber(i)) {
			b.Fatalf("phone %d is not found", i)
		}
	}
	values := make([]string, 1<<16)
	for i := range values {
		values[i] = phoneNumber(entries + i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if l.has(b, list.Phone, values[i%len(values)]) {
			b.Fatal("a phone that is not in the list is found")
		}
	}
}

func phoneNumber(i int) string { return strconv.Itoa(13_000_000_000 + i) }
