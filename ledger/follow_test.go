package ledger_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledgertest"
	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/journal"
	"github.com/stockgate/stockgate/ledger"
	"github.com/stockgate/stockgate/recovery"
	"github.com/stockgate/stockgate/sale"
)

// overtaken wraps a ledger. Its first Acquire waits: meanwhile another drainer moves the
// position.
type overtaken struct {
	ledger.Ledger
	once       sync.Once
	asks, goOn chan struct{}
}

func (o *overtaken) Acquire(ctx context.Context, sale, owner string, forHow time.Duration) (ledger.Position, bool, error) {
	o.once.Do(func() {
		close(o.asks)
		<-o.goOn
	})
	return o.Ledger.Acquire(ctx, sale, owner, forHow)
}

// A drainer that waits for a sale while another one drains it finds the position after the end
// of the journal that it saw before. That is not a loss, and raises no alarm.
func TestOvertaken(t *testing.T) {
	s := ledgertest.NewSeller(t, redistest.Start(t), 1000)
	l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	counts := ledgertest.NewCounts()
	waits := &overtaken{Ledger: l, asks: make(chan struct{}), goOn: make(chan struct{})}
	s.Drain(waits, counts)
	<-waits.asks
	s.Sell(20)
	end := s.Drain(l, ledgertest.NewCounts())
	s.UntilDrained(l)
	end()
	close(waits.goOn)
	s.Sell(20)
	s.UntilDrained(l)
	if n, text := counts.Logged(ledgertest.NotFollowing); n != 0 || counts.Failed("journal") != 0 {
		t.Errorf("the log says %q", text)
	}
}

// replaced is a ledger that another one can replace.
type replaced struct {
	ledger.Ledger
	by atomic.Pointer[ledger.Ledger]
}

func (r *replaced) now() ledger.Ledger {
	if l := r.by.Load(); l != nil {
		return *l
	}
	return r.Ledger
}

func (r *replaced) Acquire(ctx context.Context, sale, owner string, forHow time.Duration) (ledger.Position, bool, error) {
	return r.now().Acquire(ctx, sale, owner, forHow)
}

func (r *replaced) Append(ctx context.Context, sale, owner string, b *ledger.Batch) error {
	return r.now().Append(ctx, sale, owner, b)
}

func (r *replaced) Position(ctx context.Context, sale string) (ledger.Position, error) {
	return r.now().Position(ctx, sale)
}

func (r *replaced) Movements(ctx context.Context, sale string, epoch, after int64, most int, yield func(*journal.Movement) error) error {
	return r.now().Movements(ctx, sale, epoch, after, most, yield)
}

// A database that is reset to an earlier state, as by a failover to a replica that is behind,
// gets what it has lost again, also when nothing happens in the sale any more.
func TestLedgerIsPutBack(t *testing.T) {
	s := ledgertest.NewSeller(t, redistest.Start(t), 1000)
	dir := t.TempDir()
	var before ledger.Ledger = ledgertest.OpenFile(t, filepath.Join(dir, "before.db"))
	counts := ledgertest.NewCounts()
	s.Sell(10)
	end := s.Drain(before, counts)
	s.UntilDrained(before)
	end()
	l := &replaced{Ledger: ledgertest.OpenFile(t, filepath.Join(dir, "ledger.db"))}
	s.Drain(l, counts)
	s.Sell(10)
	s.UntilDrained(l.Ledger)
	l.by.Store(&before)
	s.UntilDrained(before)
}

// A sale that is rebuilt quickly continues with the ledger at once: no log line says that
// redis has lost it.
func TestFollowsQuickRebuild(t *testing.T) {
	s := ledgertest.NewSeller(t, redistest.Start(t), 1000)
	l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	counts := ledgertest.NewCounts()
	s.Drain(l, counts)
	for range 3 {
		s.Sell(5)
		s.UntilDrained(l)
		_, err := recovery.Rebuild(ledgertest.Soon(t), l, s.Store, "s", recovery.RebuildOptions{Force: true, By: "test"})
		if err != nil {
			t.Fatal(err)
		}
		s.UntilDrained(l)
		if err := s.Store.SetStatus(ledgertest.Soon(t), "s", sale.Open, "test"); err != nil {
			t.Fatal(err)
		}
		if err := s.Refresh(ledgertest.Soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	if n, text := counts.Logged(ledgertest.NotFollowing); n != 0 || counts.Failed("journal") != 0 {
		t.Errorf("the log says %q, and the metrics count %d failures", text, counts.Failed("journal"))
	}
}
