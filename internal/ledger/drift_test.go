package ledger_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Drift is logged once when it begins and once when it ends. Every edge reports cells that
// contradict themselves; the edge that drains the sale reports the rest. Sales meanwhile are
// not drift.
func TestDrift(t *testing.T) {
	server := redistest.Start(t)
	s := ledgertest.NewSeller(t, server, 1e9)
	counts := ledgertest.NewCounts()
	s.Drain(ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db")), counts)
	ctx, cancel := context.WithCancel(context.Background())
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		ledger.NewTrimmer(s.Store.Journal(), s.Store, nil, ledger.Retention{For: time.Hour, Most: 20_000}, counts.Log(), counts).Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-kept })
	stop, sold := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sold)
		for {
			select {
			case <-stop:
				return
			default:
				// the cells are compared when the ledger has nearly all
				if h, err := s.Store.Journal().Head(ctx, "s"); err == nil && h.Behind() < 500 {
					s.Sell(10)
				}
			}
		}
	}()
	until := func(balance, byLedger int) {
		t.Helper()
		ledgertest.Eventually(t, "the drift is reported", func() bool {
			b, looked := counts.Drifts("balance")
			l, compared := counts.Drifts("ledger")
			return looked && compared && b == balance && l == byLedger
		})
	}
	logged := func(begun, ended int) {
		t.Helper()
		b, _ := counts.Logged("does not add up")
		e, _ := counts.Logged("adds up again")
		if b != begun || e != ended {
			t.Errorf("the log says %d times that it drifts and %d times that it does not, want %d and %d", b, e, begun, ended)
		}
	}
	move := func(available, confirmed int) {
		t.Helper()
		moveCell(t, server, available, confirmed)
	}
	until(0, 0)
	logged(0, 0)
	move(-1, 1) // it balances
	until(0, 1)
	logged(1, 0)
	move(1, -1)
	until(0, 0)
	logged(1, 1)
	move(-1, 0)
	until(1, 1)
	logged(3, 1)
	close(stop)
	<-sold
	move(1, 0)
	until(0, 0)
	logged(3, 3)
	move(-1, 1) // also in an idle sale
	until(0, 1)
	logged(4, 3)
}

// moveCell moves units of the sale's cell without a movement.
func moveCell(t *testing.T, server *redistest.Server, available, confirmed int) {
	t.Helper()
	const script = `local n = {}
		for w in string.gmatch(redis.call('HGET', KEYS[1], 'a'), '%S+') do n[#n + 1] = tonumber(w) end
		redis.call('HSET', KEYS[1], 'a', string.format('%d %d %d %d %d', n[1], n[2] + ARGV[1], n[3], n[4], n[5] + ARGV[2]))`
	if err := server.Client().Eval(ledgertest.Soon(t), script, []string{"stockgate:{s.0}:cells"}, available, confirmed).Err(); err != nil && err.Error() != "redis: nil" {
		t.Fatal(err)
	}
}

// impatient wraps a ledger for a caller that does not wait forever.
type impatient struct {
	ledger.Ledger
	t *testing.T
}

func (i *impatient) Acquire(ctx context.Context, sale, owner string, forHow time.Duration) (ledger.Position, bool, error) {
	if _, ok := ctx.Deadline(); !ok {
		i.t.Error("Acquire waits for as long as the database does not answer")
	}
	return i.Ledger.Acquire(ctx, sale, owner, forHow)
}

// A drainer that starts on a sale in which nothing moves any more still compares its cells.
func TestDriftOfQuietSale(t *testing.T) {
	server := redistest.Start(t)
	s := ledgertest.NewSeller(t, server, 1000)
	l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	s.Sell(10)
	end := s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
	end()
	moveCell(t, server, -1, 1)
	counts := ledgertest.NewCounts()
	s.Drain(&impatient{l, t}, counts)
	ledgertest.Eventually(t, "the drift is reported", func() bool { n, _ := counts.Drifts("ledger"); return n == 1 })
	moveCell(t, server, 1, -1)
	ledgertest.Eventually(t, "its end is reported", func() bool { n, ok := counts.Drifts("ledger"); return ok && n == 0 })
}

// slow is a ledger whose drainer has each lease only briefly. The first call of Stock takes
// until another drainer has continued.
type slow struct {
	ledger.Ledger
	asks, goOn chan struct{}
	asked      atomic.Int64
}

func (s *slow) Acquire(ctx context.Context, sale, owner string, _ time.Duration) (ledger.Position, bool, error) {
	return s.Ledger.Acquire(ctx, sale, owner, time.Millisecond)
}

func (s *slow) Stock(ctx context.Context, sale string) ([]ledger.Cell, error) {
	if s.asked.Add(1) == 1 {
		close(s.asks)
		<-s.goOn
	}
	return s.Ledger.Stock(ctx, sale)
}

// A drainer that loses the sale while it reads the ledger does not report as drift what another
// one has drained since.
func TestNoDriftOfAnother(t *testing.T) {
	s := ledgertest.NewSeller(t, redistest.Start(t), 1000)
	l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	counts := ledgertest.NewCounts()
	slow := &slow{Ledger: l, asks: make(chan struct{}), goOn: make(chan struct{})}
	s.Drain(slow, counts)
	<-slow.asks
	s.Sell(20)
	end := s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
	end()
	close(slow.goOn)
	ledgertest.Eventually(t, "it compares anew", func() bool {
		n, ok := counts.Drifts("ledger")
		return slow.asked.Load() > 1 && ok && n == 0
	})
	if n, _ := counts.Logged("does not add up"); n != 0 {
		t.Errorf("drift is logged %d times", n)
	}
}
