package mirror_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/ledger/mirror"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// polls makes a mirror whose rounds the test begins.
func polls(t *testing.T, from mirror.Journals, s *ledgertest.Seller, address string) (poll func() time.Duration) {
	t.Helper()
	m, err := mirror.New(from, s.Store, mirror.Options{Address: "redis://" + address + "/3", Sales: []string{"s"}, Targets: targets}, zap.NewNop(), new(counts))
	if err != nil {
		t.Fatal(err)
	}
	round := m.Poll("s")
	t.Cleanup(func() { // closes its connections
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		m.Run(ctx)
	})
	return func() time.Duration { return round(ledgertest.Soon(t)) }
}

const (
	look  = 200 * time.Millisecond
	await = time.Second
)

// silent are journals that do not answer while they are.
type silent struct {
	*journal.Journal
	is bool
}

func (s *silent) Head(ctx context.Context, sale string) (journal.Head, error) {
	if s.is {
		return journal.Head{}, errors.New("silent")
	}
	return s.Journal.Head(ctx, sale)
}

// After one failure the mirror looks again as soon as ever; only if it goes on does it wait longer.
func TestLooksAgainSoon(t *testing.T) {
	s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
	journals := &silent{Journal: s.Store.Journal()}
	poll := polls(t, journals, s, own.Addr())
	if got := poll(); got != look {
		t.Error(got)
	}
	for _, c := range []struct {
		what          string
		fail, recover func()
	}{
		{"the sale's Redis", func() { journals.is = true }, func() { journals.is = false }},
		{"the shop's Redis", func() { own.Kill(); s.Sell(1) }, own.Restart},
	} {
		c.fail()
		var got []time.Duration
		for range 5 {
			got = append(got, poll())
		}
		c.recover()
		ledgertest.Eventually(t, c.what+" answers again", func() bool { return poll() == look }) // not before: it waited longer
		if want := []time.Duration{look, 2 * look, 4 * look, await, await}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.what, got, want)
		}
	}
	shop := third(t, own)
	ledgertest.Eventually(t, "the shop's Redis follows", func() bool { // it may be loading at first
		poll()
		return shop.Get(ledgertest.Soon(t), "store_a").Val() == "999"
	})
}

// A key that cannot be written delays no other.
func TestBadKeyDelaysNoOther(t *testing.T) {
	s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
	shop := third(t, own)
	if err := shop.HSet(t.Context(), "store_a", "this is", "no number").Err(); err != nil {
		t.Fatal(err)
	}
	poll := polls(t, s.Store.Journal(), s, own.Addr())
	for range 3 {
		s.Sell(1)
		if got := poll(); got != look {
			t.Errorf("the next look is after %v", got)
		}
		stock, err := s.Store.SaleStock(ledgertest.Soon(t), "s")
		if err != nil {
			t.Fatal(err)
		}
		have, want := shop.HGet(t.Context(), "goods_a", "ordered").Val(), text(stock.Items[0].Stock-stock.Items[0].Available)
		if have != want || stateOf(t, s).Error == "" {
			t.Errorf("%s are taken, want %s; %+v", have, want, stateOf(t, s))
		}
	}
}

// What a round finds is noted at its end: the numbers come first, because Redis may wait for its disk.
func TestNotesAfterTheNumbers(t *testing.T) {
	s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
	shop := third(t, own)
	poll := polls(t, s.Store.Journal(), s, own.Addr())
	written := func(number string) {
		t.Helper()
		ledgertest.Eventually(t, number, func() bool { poll(); return shop.Get(ledgertest.Soon(t), "store_a").Val() == number })
	}
	written("1000")
	if err := shop.Set(t.Context(), "store_a", "77", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Sell(1)
	written("999")
	ledgertest.Eventually(t, "the drift is noted", func() bool { state := stateOf(t, s); return state.Drift == 1 && state.Had == `"77"` })
}

// A sale that is deleted takes the lease with it: of the one that was loaded again only the edge that
// has its lease writes.
func TestTheLeaseEndsWithTheSale(t *testing.T) {
	s, own := ledgertest.NewSeller(t, redistest.Start(t), 1000), redistest.Start(t)
	shop, poll := third(t, own), polls(t, s.Store.Journal(), s, own.Addr())
	left := func() string { poll(); return shop.Get(ledgertest.Soon(t), "store_a").Val() }
	ledgertest.Eventually(t, "the first number", func() bool { return left() == "1000" })
	s.Close()
	s.Remove()
	s.Load(40)
	ours, err := s.Store.Journal().AcquireMirror(ledgertest.Soon(t), "s", "another edge", 3*time.Second, nil)
	if err != nil || !ours {
		t.Fatal(ours, err)
	}
	if got := left(); got != "1000" {
		t.Errorf("an edge without the lease has written %s", got)
	}
	if _, err := s.Store.Journal().AcquireMirror(ledgertest.Soon(t), "s", "another edge", 0, nil); err != nil {
		t.Fatal(err)
	}
	if got := left(); got != "40" {
		t.Errorf("with the lease it has written %s, want 40", got)
	}
}
