package recovery_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/lua"
)

// What is over when Redis has lost a sale is not put back, and no token of before makes it
// again. Where Redis has something of before, all is put back until that is merged.
func TestRebuildForgets(t *testing.T) {
	on := redistest.Embedded(t)
	s := ledgertest.NewSeller(t, on, 100)
	l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	end := s.Drain(l, ledgertest.NewCounts())
	h, no, err := ledgertest.Attempt(t, s, "refused", "order-refused")
	if err != nil || no != nil {
		t.Fatal(no, err)
	}
	if _, err := s.Store.Release(ledgertest.Soon(t), "s", h.ID, reservation.SourceShop, "status_409"); err != nil {
		t.Fatal(err)
	}
	s.Sell(4)
	s.UntilDrained(l)
	end()

	on.SetTime(time.Now().Add(3 * time.Hour))
	store, err := reservation.Open(shard.Options{Addresses: []string{on.Addr()}, Timeout: time.Minute, Scripts: lua.Embedded()})
	if err != nil {
		t.Fatal(err)
	}
	later := edge.New(store, edge.Options{Keys: []shard.SigningKey{{KID: "k", JWK: "{}"}}})
	t.Cleanup(func() {
		if err := later.Stop(ledgertest.Soon(t)); err != nil {
			t.Error(err)
		}
	})
	refresh := func() {
		t.Helper()
		if err := later.Refresh(ledgertest.Soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	for range 2 { // it hears what time it is
		if _, err := later.Store.Confirm(ledgertest.Soon(t), "s", "nothing", reservation.SourceShop, ""); !errors.Is(err, reservation.ErrNotFound) {
			t.Fatal(err)
		}
	}
	rebuildWith := func(force bool) {
		t.Helper()
		if _, err := recovery.Rebuild(ledgertest.Soon(t), l, later.Store, "s", recovery.RebuildOptions{By: "test", Force: force}); err != nil {
			t.Fatal(err)
		}
		refresh()
	}
	forgotten := func() bool {
		_, err := later.Store.ReservationIn(ledgertest.Soon(t), "s", h.ID)
		if err != nil && !errors.Is(err, reservation.ErrNotFound) {
			t.Fatal(err)
		}
		return err != nil
	}
	evidence := &reservation.Evidence{Sale: "s", ID: h.ID, Buyer: "buyer of refused", Epoch: h.Epoch, Created: h.Created, Exp: h.Exp, Ref: h.Ref, Lines: h.Lines}

	rebuildWith(true) // the previous life has all of before
	if forgotten() {
		t.Error("it was not put back while something of before was there")
	}
	if _, err := later.ConfirmWith(ledgertest.Soon(t), evidence, "paid"); err == nil {
		t.Error("the shop's word has changed")
	}
	if err := on.Client().FlushAll(ledgertest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	rebuildWith(false)
	if !forgotten() {
		t.Error("what is over was put back")
	}
	stock, err := later.Store.SaleStock(ledgertest.Soon(t), "s")
	if err != nil || !stock.Balanced {
		t.Errorf("the stock is %+v, %v", stock, err)
	}
	if got, err := later.ConfirmWith(ledgertest.Soon(t), evidence, "paid"); !errors.Is(err, reservation.ErrNotFound) {
		t.Errorf("a token of before makes it again: %s, %v", got, err)
	}
}
