package ledgertest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// anew: a sale that was deleted and is loaded again under its old id is followed from its
// beginning. What the ledger had of it keeps its rows under another name, which no edge
// misses. One that Redis has lost is not taken for a deleted one.
func anew(t *testing.T, open func() ledger.Ledger) {
	l := ready(t, open)
	s := NewSeller(t, redistest.Start(t), 100)
	counts := NewCounts()
	end := s.Drain(l, counts)
	s.Sell(5)
	s.Close()
	s.UntilDrained(l)
	old, err := l.Position(Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Archive(Soon(t), "s", "another owner", old, "s@x"); !errors.Is(err, ledger.ErrNotOwner) {
		t.Errorf("a drainer that does not have the sale archives it: %v", err)
	}
	s.Remove()
	s.Load(40)
	s.Sell(3) // of which one is returned as damaged, or none
	s.UntilDrained(l)
	now, err := s.Store.SaleStock(Soon(t), "s")
	if err != nil || len(now.Items) != 1 || now.Items[0].Stock > 40 {
		t.Fatalf("the new sale has %+v %v", now, err)
	}
	if n, text := counts.Logged(NotFollowing); n != 0 {
		t.Errorf("the log says %q", text)
	}
	if epoch, err := l.Archived(Soon(t), "s"); epoch != old.Epoch || err != nil {
		t.Errorf("the last one that was deleted has epoch %d, want %d: %v", epoch, old.Epoch, err)
	}
	if epoch, err := l.Archived(Soon(t), "other"); epoch != 0 || err != nil {
		t.Errorf("of another sale one with epoch %d was deleted: %v", epoch, err)
	}
	archived := "s@" + strconv.FormatInt(old.Epoch, 10)
	if at, err := l.Position(Soon(t), archived); at != old || err != nil {
		t.Errorf("the old sale is at %+v, want %+v: %v", at, old, err)
	}
	if stock, err := l.Stock(Soon(t), archived); err != nil || len(stock) != 1 || stock[0].Stock <= 90 {
		t.Errorf("the old sale has %+v %v", stock, err)
	}
	if stock, err := l.Stock(Soon(t), "s"); err != nil || len(stock) != 1 || stock[0].Stock != now.Items[0].Stock {
		t.Errorf("the new sale has %+v %v", stock, err)
	}
	if ids, err := l.Sales(Soon(t)); err != nil || !slices.Equal(ids, []string{"s"}) {
		t.Errorf("the sales are %v %v", ids, err)
	}
	// rebuilt from the ledger it is the new sale, and nothing of the old one
	if _, err := recovery.Rebuild(Soon(t), l, s.Store, "s", recovery.RebuildOptions{Force: true, By: "test"}); err != nil {
		t.Fatal(err)
	}
	if stock, err := s.Store.SaleStock(Soon(t), "s"); err != nil || len(stock.Items) != 1 || stock.Items[0] != now.Items[0] {
		t.Errorf("rebuilt it has %+v %v", stock, err)
	}
	if err := s.Refresh(Soon(t)); err != nil {
		t.Fatal(err)
	}
	s.UntilDrained(l)

	// deleted twice while the ledger did not follow
	end()
	for range 2 {
		s.Close()
		s.Remove()
		s.Load(30)
	}
	if _, err := recovery.Rebuild(Soon(t), l, s.Store, "s", recovery.RebuildOptions{Force: true, By: "test"}); !errors.Is(err, shard.ErrRefused) {
		t.Errorf("a rebuild puts the deleted sale in the place of the new one: %v", err)
	}
	end = s.Drain(l, counts)
	s.Sell(2)
	s.UntilDrained(l)

	// lost, and loaded anew: that is an alarm
	end()
	at, err := l.Position(Soon(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := shard.Redis(s.Store.Shard()).Del(Soon(t), s.Store.Shard().ShardKeys("s")...).Err(); err != nil {
		t.Fatal(err)
	}
	s.Load(20)
	s.Drain(l, counts)
	Eventually(t, "the alarm", func() bool { n, _ := counts.Logged(NotFollowing); return n > 0 })
	if now, err := l.Position(Soon(t), "s"); now != at || err != nil {
		t.Errorf("the ledger has moved from %+v to %+v: %v", at, now, err)
	}
}

// Close ends the open holds of the sale and closes it, so that it can be deleted.
func (s *Seller) Close() {
	s.t.Helper()
	for n := 1; n <= s.made; n++ {
		_, _ = s.Store.Confirm(Soon(s.t), "s", fmt.Sprintf("r%d", n), reservation.SourceShop, "test") // others have ended
	}
	if err := s.Store.SetStatus(Soon(s.t), "s", sale.Closed, "test"); err != nil {
		s.t.Fatal(err)
	}
}

// Remove deletes the sale, which is closed.
func (s *Seller) Remove() {
	s.t.Helper()
	err := s.Store.Delete(Soon(s.t), "s", true)
	if err == nil {
		err = s.Refresh(Soon(s.t))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
