package backup_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/backup"
	"github.com/stockgate/stockgate/internal/store/child"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

// open starts a server, and returns it with a store that reaches it under a prefix.
func open(t *testing.T, dir, prefix string) (*child.Server, *reservation.Store) {
	t.Helper()
	s, err := child.Open(child.Options{Dir: dir, Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	o := shard.Options{Timeout: time.Minute, Prefix: prefix}
	s.Connect(&o)
	return s, stocktest.OpenStore(t, o)
}

// No sale of any status, under any prefix, goes on from a backup by itself, and neither do orders that wait.
func TestRestore(t *testing.T) {
	at, err := os.MkdirTemp("", "sg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(at) })
	const prefix = "shop-one"
	s, store := open(t, filepath.Join(at, "stock"), prefix)
	for _, id := range []string{"open", "paused", "closed"} {
		stocktest.Load(t, store, stocktest.OpenSale(id, 10))
	}
	if _, err := store.Apply(stocktest.Soon(t), stocktest.OpenSale("draft", 10), reservation.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"paused", "closed"} {
		if err := store.SetStatus(stocktest.Soon(t), id, sale.Status(id), "me"); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"first", "second"} {
		_, refusal, err := store.Reserve(stocktest.Soon(t), &reservation.ReserveRequest{
			ID: id, Sale: "open", Version: 2, Buyer: "b", Lines: []sale.Line{{SKU: "a", Quantity: 1}}, HoldFor: time.Hour, Mode: "response",
			Queue: &reservation.QueueOptions{Pace: reservation.Pace{AtOnce: 1}, Most: 10, Memory: 1 << 20, Longest: time.Hour, Edge: "e", Gate: "g", Order: []byte("order")},
		})
		if refusal != nil || err != nil {
			t.Fatal(refusal, err)
		}
	}
	for _, id := range []string{"open", "draft"} {
		if _, _, _, err := store.Schedule(stocktest.Soon(t), id, reservation.PlannedAct{At: time.Now().Add(time.Hour).Format(time.RFC3339), Act: "open"}, "me"); err != nil {
			t.Fatal(err)
		}
	}
	before := map[string]journal.Head{}
	for _, id := range []string{"open", "paused", "closed", "draft"} {
		h, err := store.Journal().Head(stocktest.Soon(t), id)
		if err != nil {
			t.Fatal(err)
		}
		before[id] = h
	}
	saved, err := s.Backup(stocktest.Soon(t), func(child.Stage) {})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(saved)
	saved.Close()
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(at, "again")
	done, err := backup.Restore(stocktest.Soon(t), backup.Options{Dir: again, Log: zap.NewNop()}, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []backup.Sale{{ID: "closed", Was: "closed"}, {ID: "draft", Was: "draft"}, {ID: "open", Was: "open", Waiting: done.Sales[2].Waiting, AtShop: 2 - done.Sales[2].Waiting}, {ID: "paused", Was: "paused"}}
	if !slices.Equal(done.Sales, want) || done.Sales[2].Waiting == 0 || !done.Time.Equal(saved.Time) {
		t.Errorf("it restores %+v, want %+v of %v", done, want, saved.Time)
	}

	_, store = open(t, again, prefix)
	for id, status := range map[string]sale.Status{"open": sale.Paused, "paused": sale.Paused, "draft": sale.Draft, "closed": sale.Closed} {
		b, err := store.SaleStock(stocktest.Soon(t), id)
		if err != nil || b.Status != status || b.RestoredFrom.Equal(saved.Time) != (status != sale.Closed) || !b.Balanced {
			t.Errorf("%s: %+v, %v", id, b, err)
		}
		for _, a := range b.Scheduled {
			if !a.Stale {
				t.Errorf("what was scheduled in %s goes on: %+v", id, a)
			}
		}
	}
	for id, was := range before {
		h, err := store.Journal().Head(stocktest.Soon(t), id)
		if err != nil || h.Epoch <= was.Epoch || h.Continues != (journal.Continued{Epoch: was.Epoch, Last: was.Last}) {
			t.Errorf("%s goes on in %+v, %v; it was %+v", id, h, err, was)
		}
		if _, err := store.MarkRestored(stocktest.Soon(t), id, saved.Time, "me"); err != nil {
			t.Fatal(err)
		}
		if again, err := store.Journal().Head(stocktest.Soon(t), id); err != nil || again.Epoch != h.Epoch || again.Last != h.Last {
			t.Errorf("%s was marked again, and is %+v, %v", id, again, err)
		}
	}
	if line, err := queue.Show(stocktest.Soon(t), store, "open"); err != nil || !line.Paused {
		t.Errorf("its line is %+v, %v", line, err)
	}
	for _, id := range []string{"open", "draft"} {
		if err := store.SetStatus(stocktest.Soon(t), id, sale.Open, "me"); err != nil {
			t.Fatal(err)
		}
		if b, err := store.SaleStock(stocktest.Soon(t), id); err != nil || !b.RestoredFrom.IsZero() {
			t.Errorf("an operator has opened %s, and it is %+v, %v", id, b, err)
		}
	}
}
