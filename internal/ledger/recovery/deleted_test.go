package recovery_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
)

// A sale that was deleted on purpose is restored from the ledger where an operator wants that, and
// never in the place of the one that was loaded again under its id.
func TestRebuildOfADeletedSale(t *testing.T) {
	for name, test := range map[string]struct {
		anew, lost, emptied bool
		force               bool
		refused             bool
	}{
		"deleted":                               {},
		"deleted, and redis was emptied":        {emptied: true},
		"loaded again":                          {anew: true, refused: true},
		"loaded again, with force":              {anew: true, force: true, refused: true},
		"loaded again, and the new one is lost": {anew: true, lost: true, refused: true},
		"loaded again and lost, with force":     {anew: true, lost: true, force: true},
		"loaded again, and redis was emptied":   {anew: true, emptied: true},
	} {
		t.Run(name, func(t *testing.T) {
			server, s, l := ledgertest.Drained(t, 1000, 20)
			s.Close()
			s.Remove()
			if test.anew {
				s.Load(40)
				if err := s.Store.SetStatus(ledgertest.Soon(t), "s", "paused", "test"); err != nil {
					t.Fatal(err)
				}
			}
			if test.lost {
				if err := server.Client().Del(ledgertest.Soon(t), s.Store.Shard().ShardKeys("s")...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if test.emptied {
				ledgertest.Flush(t, server)
			}
			_, err := recovery.Rebuild(ledgertest.Soon(t), l, s.Store, "s", recovery.RebuildOptions{Force: test.force, By: "test"})
			if errors.Is(err, shard.ErrRefused) != test.refused || !test.refused && err != nil {
				t.Fatalf("the rebuild says %v", err)
			}
			stock, err := s.Store.SaleStock(ledgertest.Soon(t), "s")
			switch {
			case test.lost && test.refused:
				if !errors.Is(err, shard.ErrNoSale) {
					t.Errorf("redis has %+v, %v", stock, err)
				}
			case err != nil:
				t.Fatal(err)
			case (stock.Items[0].Stock == 40) != test.refused:
				t.Errorf("redis has a stock of %d", stock.Items[0].Stock)
			}
		})
	}
}

// A note that a sale is about to be deleted, left by a call that was refused, makes no deleted sale of it.
func TestNoteOfASaleThatIsThere(t *testing.T) {
	server, s, _ := ledgertest.Drained(t, 10, 1)
	ctx, c := ledgertest.Soon(t), s.Store.Shard()
	head, err := s.Store.Journal().Head(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Client().HSet(ctx, c.DeletedKey(), "s", head.Epoch).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Journal().Announce(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	if deleted, err := s.Store.Journal().DeletedEpoch(ctx, "s"); err != nil || deleted != 0 {
		t.Errorf("the last deleted one has epoch %d, %v", deleted, err)
	}
}

// While the ledger has a deleted sale still, the one that was loaded again under its id is compared
// with its journal, and nothing of the deleted one comes back.
func TestReconcileOfASaleLoadedAnew(t *testing.T) {
	for name, test := range map[string]struct{ drained, anew int }{
		"the deleted one is longer": {drained: 20},
		"the new one is longer":     {drained: 2, anew: 50},
	} {
		t.Run(name, func(t *testing.T) {
			server, s, l := ledgertest.Drained(t, 1000, test.drained)
			s.Close()
			s.Remove()
			s.Load(60)
			s.Sell(test.anew)
			raw := ledgertest.Raw(t, server.Client())
			for _, repair := range []bool{false, true} {
				report, err := recovery.Reconcile(ledgertest.Soon(t), s.Store, l, "s", recovery.Options{Repair: repair, By: "test"})
				if err != nil {
					t.Fatal(err)
				}
				if !report.Agrees || report.Found != 0 || report.Against != recovery.AgainstJournal || len(report.Notes) != 1 {
					t.Errorf("repair %t: %s", repair, texts(report))
				}
			}
			ledgertest.SameRaw(t, ledgertest.Raw(t, server.Client()), raw)
		})
	}
}

// Redis forgets with all else which sale under an id was deleted; the ledger has archived it. An order of
// that one takes no unit of the sale that is rebuilt.
func TestRebuildKnowsWhatWasDeleted(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 1000, 20)
	deleted, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Remove()
	s.Load(40)
	end := s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
	end()
	lost, err := l.Position(ledgertest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Flush(t, server)
	ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Open: true})
	stock, err := s.Store.SaleStock(ledgertest.Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	for epoch, want := range map[int64]error{deleted.Epoch: reservation.ErrNotFound, lost.Epoch: nil} {
		paid := &reservation.Evidence{
			Sale: "s", ID: fmt.Sprint("paid-", epoch), Buyer: "hash", Epoch: epoch, Created: time.Now(), Exp: time.Now().Add(time.Minute),
			Lines: []sale.Line{{SKU: stock.Items[0].SKU, Quantity: 1}},
		}
		if _, err := s.Store.Recreate(ledgertest.Soon(t), paid, "test"); !errors.Is(err, want) {
			t.Errorf("a payment of epoch %d: %v, want %v", epoch, err, want)
		}
	}
}

// What another rebuild has done is no failure of this one.
func TestOvertakenIsRefused(t *testing.T) {
	if !errors.Is(recovery.ErrOvertaken, shard.ErrRefused) {
		t.Error("it is not refused")
	}
}
