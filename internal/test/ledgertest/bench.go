package ledgertest

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Fill writes the journal of a sale with this many orders into Redis: each is held and then
// confirmed, with a purchase limit and a key. It returns the epoch and the last number.
func Fill(t testing.TB, c *redis.Client, id string, orders int) (epoch, last int64) {
	t.Helper()
	ctx := context.Background()
	tag := "stockgate:{" + id + ".0}:"
	epoch = noon
	add := func(p redis.Pipeliner, kind, id, was, lines, cause, record string) {
		last++
		p.XAdd(ctx, &redis.XAddArgs{Stream: tag + "journal", ID: fmt.Sprintf("%d-0", last), Values: []any{
			"v", "1", "time", noon + last,
			"movements", strings.Join([]string{kind, id, was, lines, "Zm9yIGEga2V5ZWQgaGFzaCBvZiB0aGUgYnV5ZXI", cause, record}, "\t"),
		}})
	}
	for from := 0; from < orders; from += 5000 {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			if from == 0 {
				add(p, "loaded", "1", "", fmt.Sprintf("20002001 %d", orders), "file", "")
				add(p, "open", "2", "", "", "operator", "")
			}
			for n := from; n < min(from+5000, orders); n++ {
				one := fmt.Sprintf("0193a5c1-77aa-7%03x-9e10-%012d", n%4096, n)
				record := fmt.Sprintf("held\t%d\t%d\t%d\t%d\tresponse\tZm9yIGEga2V5ZWQgaGFzaCBvZiB0aGUgYnV5ZXI\t20002001 1\t"+
					"buyer:sale:units|-|Zm9yIGEga2V5%014d 1\t\t2\tk|Zm9yIGFub3RoZXIga2V5ZWQgaGFzaCB0%011d\t"+
					"c2hhMjU2IG9mIHdoYXQgd2FzIGFza2VkIGZvciBpdCA\t86400000\torder-%d\tmain\t\t\t", noon+30_000, noon+25_000, noon, noon, n, n, n)
				add(p, "held", one, "", "20002001 1", "", record)
				add(p, "confirmed", one, "held", "20002001 1", "status_201", "")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	doc, err := json.Marshal(&sale.Sale{
		ID: id, StartsAt: time.UnixMilli(noon), EndsAt: time.UnixMilli(noon + 1e9), Timezone: "UTC", Items: []sale.Item{{SKU: "20002001", Stock: int64(orders)}},
		Limits: []sale.Limit{{Per: "buyer", Every: "sale", Max: 1, Count: "units"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.HSet(ctx, tag+"meta", "epoch", epoch, "seq", last, "version", 2, "status", "open", "clock", noon+last, "schema", 1, "doc", string(doc)).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.SAdd(ctx, "stockgate:sales", id).Err(); err != nil {
		t.Fatal(err)
	}
	return epoch, last
}

// BenchRebuild measures how long it takes to rebuild a sale from a driver's database.
func BenchRebuild(b *testing.B, l ledger.Ledger) {
	server, store, epoch, last := drained(b, l)
	if err := server.Client().FlushAll(context.Background()).Err(); err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	b.StartTimer()
	out, err := recovery.Rebuild(context.Background(), l, store, "s", recovery.RebuildOptions{Open: true, By: "bench"})
	b.StopTimer()
	runtime.ReadMemStats(&after)
	if err != nil || out.Ledger != (ledger.Position{Epoch: epoch, Seq: last}) || out.Reservations[record.Confirmed] != max(b.N/2, 1) {
		b.Fatalf("%+v, error %v", out, err)
	}
	b.ReportMetric(float64(last)/b.Elapsed().Seconds(), "movements/s")
	b.ReportMetric(float64(after.Sys-before.Sys)/(1<<20), "MiB")
}

// Bench measures a driver: from a journal in a real Redis into its database, by one
// drainer.
func Bench(b *testing.B, l ledger.Ledger) {
	_, _, epoch, last := drained(b, l)
	b.ReportMetric(float64(last)/b.Elapsed().Seconds(), "movements/s")
	if at, err := l.Position(context.Background(), "s"); err != nil || at != (ledger.Position{Epoch: epoch, Seq: last}) {
		b.Fatalf("the ledger is at %+v, error %v", at, err)
	}
}

// drained drains a journal of b.N movements, and stops the timer.
func drained(b *testing.B, l ledger.Ledger) (server *redistest.Server, store *reservation.Store, epoch, last int64) {
	b.Helper()
	server = redistest.Start(b)
	epoch, last = Fill(b, server.Client(), "s", max(b.N/2, 1))
	store, err := reservation.Open(shard.Options{Addresses: []string{server.Addr()}, Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	if err := l.Migrate(context.Background()); err != nil {
		b.Fatal(err)
	}
	counts := NewCounts()
	ctx, cancel := contextWithCancel()
	defer cancel()
	done := make(chan struct{})
	b.ResetTimer()
	go func() {
		defer close(done)
		ledger.NewDrainer(store.Journal(), store, l, counts.Log(), counts).Run(ctx)
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for counts.Movements() < int(last) {
		<-tick.C
	}
	b.StopTimer()
	cancel()
	<-done
	if n, text := counts.Logged("the ledger"); n > 0 {
		b.Fatal(text)
	}
	return server, store, epoch, last
}
