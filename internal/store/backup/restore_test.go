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
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/store/waitlist"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
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

// People on a waiting list are restored with their sale, and an offer goes on for what was left of it when an operator opens it.
func TestRestoreKeepsWhoWaits(t *testing.T) {
	at, err := os.MkdirTemp("", "sg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(at) })
	s, store := open(t, filepath.Join(at, "stock"), "shop")
	file := stocktest.OpenSale("open", 1)
	file.Waitlist = &sale.Waitlist{Offer: sale.Span(time.Hour), Max: 100}
	stocktest.Load(t, store, file)
	hold := &reservation.ReserveRequest{ID: "first", Sale: "open", Version: 2, Buyer: "b", Lines: []sale.Line{{SKU: "a", Quantity: 1}}, HoldFor: time.Hour, Mode: "response"}
	if _, refusal, err := store.Reserve(stocktest.Soon(t), hold); refusal != nil || err != nil {
		t.Fatal(refusal, err)
	}
	for _, buyer := range []string{"Ann", "Ben"} {
		if _, err := store.RunPromised(stocktest.Soon(t), "open", shard.Op(lua.Enter, "a", 1, 10, buyer, " phone=of-"+buyer)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Release(stocktest.Soon(t), "open", "first", reservation.SourceUnsent, ""); err != nil {
		t.Fatal(err)
	}
	offer := &reservation.ReserveRequest{Sale: "open", Version: 2, Buyer: "Ann", Lines: []sale.Line{{SKU: "a", Quantity: 1}}, HoldFor: time.Hour}
	if made, err := store.Offer(stocktest.Soon(t), "open", []int64{1}, []*reservation.ReserveRequest{offer}); err != nil || made[0].Refusal != nil || made[0].Gone {
		t.Fatalf("%+v, %v", made, err)
	}
	saved, err := s.Backup(stocktest.Soon(t), func(child.Stage) {})
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(at, "again")
	_, err = backup.Restore(stocktest.Soon(t), backup.Options{Dir: again, Log: zap.NewNop()}, saved)
	saved.Close()
	if err != nil {
		t.Fatal(err)
	}
	_, store = open(t, again, "shop")
	exp := func() int64 {
		r, err := store.Reservation(stocktest.Soon(t), offerOf(t, store))
		if err != nil || r.State != record.Held {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Exp.UnixMilli()
	}
	if left := exp(); left > time.Hour.Milliseconds() || left < 50*time.Minute.Milliseconds() {
		t.Errorf("in the pause %d ms are left of the offer", left)
	}
	if err := store.SetStatus(stocktest.Soon(t), "open", sale.Open, "me"); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(time.UnixMilli(exp())); left > time.Hour || left < 50*time.Minute {
		t.Errorf("the offer goes on for %v", left)
	}
}

// offerOf is the id of the offer to the first of two people on the list.
func offerOf(t *testing.T, store *reservation.Store) string {
	t.Helper()
	all, _, err := waitlist.ReadAll(stocktest.Soon(t), store.Shard().Data("open"))
	if err != nil || len(all) != 2 || !all[0].Offered || all[1].Buyer != "Ben" || all[1].Identity("phone") != "of-Ben" {
		t.Fatalf("on the list are %d, %v", len(all), err)
	}
	return all[0].OfferID()
}
