package recovery_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
)

// While what Redis had is not all merged, an outcome of a reservation that is still
// in the previous life has to wait, nothing ends by its deadline, and the sale is not opened.
func TestRebuildWaitsForWhatIsAside(t *testing.T) {
	server, s, l := ledgertest.Drained(t, 100, 20)
	c, ctx := server.Client(), ledgertest.Soon(t)
	if _, no, err := ledgertest.Attempt(t, s, "previous", ""); no != nil || err != nil {
		t.Fatal(no, err)
	}
	evidence := &reservation.Evidence{Sale: "s", ID: "previous", Epoch: 1, Lines: []sale.Line{{SKU: "a", Quantity: 1}}}
	old := breakOff(t, c, func() error {
		_, err := recovery.Rebuild(ctx, l, s.Store, "s", recovery.RebuildOptions{Force: true, Open: true})
		return err
	})
	ops := map[string]func() error{
		"confirm": func() error {
			_, err := s.Store.Confirm(ctx, "s", "previous", reservation.SourceAnswer, "")
			return err
		},
		"with token": func() error { _, err := s.ConfirmWith(ctx, evidence, ""); return err },
		"release": func() error {
			_, err := s.Store.Release(ctx, "s", "previous", reservation.SourceUnsent, "")
			return err
		},
		"operator": func() error {
			_, err := s.Store.Release(ctx, "s", "previous", reservation.SourceOperator, "")
			return err
		},
		"doubt":  func() error { _, err := s.Store.Doubt(ctx, "s", "previous", ""); return err },
		"extend": func() error { _, err := s.Store.Extend(ctx, "s", "previous", time.Hour, time.Hour); return err },
		"return": func() error {
			_, err := s.Store.Return(ctx, "s", "previous", reservation.Return{ID: "x"})
			return err
		},
	}
	for name, do := range ops {
		if err := do(); !errors.Is(err, shard.ErrRestoring) || !errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("%s says %v", name, err)
		}
	}
	if err := s.Store.SetStatus(ctx, "s", sale.Open, "operator"); !errors.Is(err, shard.ErrRefused) || !strings.Contains(err.Error(), "caddy stockgate rebuild s --from ledger") {
		t.Errorf("it is opened: %v", err)
	}
	if state, err := s.Store.Confirm(ctx, "s", "r3", reservation.SourceAnswer, ""); state != record.Confirmed || err != nil {
		t.Errorf("what the ledger has: %s, %v", state, err)
	}
	var all sync.WaitGroup // one that waits does not keep others from being told
	for i := range 50 {
		all.Go(func() {
			id := [...]string{"r8", "previous"}[i%2]
			if _, err := s.Store.Confirm(ctx, "s", id, reservation.SourceAnswer, ""); (id == "previous") != errors.Is(err, shard.ErrRestoring) {
				t.Errorf("%s together with others: %v", id, err)
			}
		})
	}
	all.Wait()
	old()
	if out := ledgertest.Rebuild(t, l, s, recovery.RebuildOptions{Open: true}); out.Status != sale.Open || out.Merged.Made[record.Held] != 1 {
		t.Errorf("it says %+v, merged %+v", out, out.Merged)
	}
	if state, err := s.Store.Confirm(ctx, "s", "previous", reservation.SourceShop, ""); state != record.Confirmed || err != nil {
		t.Errorf("in the end: %s, %v", state, err)
	}
	if _, err := s.Store.Confirm(ctx, "s", "unknown", reservation.SourceShop, ""); err != reservation.ErrNotFound {
		t.Errorf("what is nowhere: %v", err)
	}
	if merging, err := c.HExists(ctx, "stockgate:{s.0}:meta", "merging").Result(); merging || err != nil {
		t.Errorf("it still merges: %v, %v", merging, err)
	}
	s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
}
