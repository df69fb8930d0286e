package recovery_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// fill writes a journal of b.N movements, and what they leave in Redis.
func fill(b *testing.B, c *redis.Client, orders int) {
	b.Helper()
	ctx := context.Background()
	ledgertest.Fill(b, c, "s", orders)
	store, err := reservation.Open(shard.Options{Addresses: []string{c.Options().Addr}, Timeout: 10 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	held := map[string]*record.Record{}
	for after := int64(0); ; {
		movements, err := store.Journal().Movements(ctx, "s", after, 5000)
		if err != nil {
			b.Fatal(err)
		}
		if len(movements) == 0 {
			break
		}
		_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, m := range movements {
				after = m.Seq
				switch m.Kind {
				case "held":
					held[m.ID] = m.Record
				case "confirmed":
					r := held[m.ID]
					delete(held, m.ID)
					r.State, r.Changed, r.Cause = record.Confirmed, m.Time, m.Cause
					p.HSet(ctx, tag+"records", m.ID, r.Text())
					p.HSet(ctx, tag+"bindings", r.Guard, m.ID, "r|"+r.Ref, m.ID, record.RefField(r.Buyer, r.Ref), m.ID)
					p.HSet(ctx, tag+"limits", strings.TrimSuffix(r.Charges, " 1"), "1 0")
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := c.HSet(ctx, tag+"cells", "20002001", fmt.Sprintf("%d 0 0 0 %d", orders, orders)).Err(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkReconcile compares a sale of b.N movements, each order held and then confirmed,
// with the journal, and with a ledger in a file.
func BenchmarkReconcile(b *testing.B) {
	for _, withLedger := range []bool{false, true} {
		b.Run(map[bool]string{false: "journal", true: "sqlite"}[withLedger], func(b *testing.B) {
			orders := max(b.N/2, 1)
			server := redistest.Start(b)
			fill(b, server.Client(), orders)
			store, err := reservation.Open(shard.Options{Addresses: []string{server.Addr()}, Timeout: 10 * time.Second})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			var l ledger.Ledger
			if withLedger {
				l = openFile(b, filepath.Join(b.TempDir(), "ledger.db"))
				counts := ledgertest.NewCounts()
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan struct{})
				go func() { defer close(done); ledger.NewDrainer(store.Journal(), store, l, counts.Log(), counts).Run(ctx) }()
				ledgertest.Eventually(b, "all is drained", func() bool { return counts.Movements() >= 2*orders+2 })
				cancel()
				<-done
			}
			b.ResetTimer()
			report, err := recovery.Reconcile(context.Background(), store, l, "s", recovery.Options{})
			b.StopTimer()
			if err != nil || report.Found != 0 || report.Reservations != orders {
				b.Fatalf("error %v: %s", err, texts(report))
			}
			b.ReportMetric(b.Elapsed().Seconds(), "s")
		})
	}
}
