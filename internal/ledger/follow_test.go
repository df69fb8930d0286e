package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
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
		ctx = context.WithoutCancel(ctx) // however long it was
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

// A database that lacks more than a batch gets the rest without a pause, though Redis says that
// the ledger has all of a quiet sale.
func TestLedgerIsPutFarBack(t *testing.T) {
	s := ledgertest.NewSeller(t, redistest.Start(t), 1000)
	dir := t.TempDir()
	counts := ledgertest.NewCounts()
	s.Sell(20)
	l := ledgertest.OpenFile(t, filepath.Join(dir, "ledger.db"))
	end := s.Drain(l, counts)
	s.UntilDrained(l)
	end()
	empty := ledgertest.OpenFile(t, filepath.Join(dir, "empty.db"))
	poll := ledger.Poll(ledger.NewDrainer(s.Store.Journal(), s.Store, empty, counts.Log(), counts), "s", 1)
	for at := range 3 {
		if moved, err := poll(ledgertest.Soon(t)); moved == 0 || err != nil {
			t.Fatalf("batch %d has %d movements, error %v", at+1, moved, err)
		}
	}
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

// interrupted wraps a ledger. It calls what is set once, before a drainer reads the journal or
// before it acknowledges what it has read.
type interrupted struct {
	ledger.Ledger
	read, acknowledge atomic.Pointer[func()]
}

func call(f *atomic.Pointer[func()]) {
	if f := f.Swap(nil); f != nil {
		(*f)()
	}
}

func (i *interrupted) Acquire(ctx context.Context, sale, owner string, forHow time.Duration) (ledger.Position, bool, error) {
	at, ours, err := i.Ledger.Acquire(ctx, sale, owner, forHow)
	call(&i.read)
	return at, ours, err
}

func (i *interrupted) Append(ctx context.Context, sale, owner string, b *ledger.Batch) error {
	err := i.Ledger.Append(ctx, sale, owner, b)
	call(&i.acknowledge)
	return err
}

// A sale that is deleted while a drainer works on it raises no alarm, and one that is loaded
// again at that moment gets none of its rows into those of the old one.
func TestDeletedMeanwhile(t *testing.T) {
	for _, test := range []struct {
		name string
		at   func(*interrupted) *atomic.Pointer[func()]
		anew bool
		rows int64 // of the old sale, which are all or none
	}{
		{"before the journal is read", func(i *interrupted) *atomic.Pointer[func()] { return &i.read }, false, 0},
		{"before the journal is read, and loaded again", func(i *interrupted) *atomic.Pointer[func()] { return &i.read }, true, 0},
		{"before it is acknowledged", func(i *interrupted) *atomic.Pointer[func()] { return &i.acknowledge }, false, 1},
		{"before it is acknowledged, and loaded again", func(i *interrupted) *atomic.Pointer[func()] { return &i.acknowledge }, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := ledgertest.NewSeller(t, redistest.Start(t), 1000)
			l := &interrupted{Ledger: ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))}
			counts := ledgertest.NewCounts()
			s.Sell(20)
			s.Close()
			old, err := s.Store.Journal().Head(ledgertest.Soon(t), "s")
			if err != nil {
				t.Fatal(err)
			}
			deleted := make(chan struct{})
			remove := func() {
				defer close(deleted)
				s.Remove()
				if test.anew {
					s.Load(40)
					s.Sell(1)
				}
			}
			test.at(l).Store(&remove)
			s.Drain(l, counts)
			<-deleted
			if !test.anew {
				s.Load(40)
			}
			s.UntilDrained(l)
			archived, err := l.Position(ledgertest.Soon(t), fmt.Sprint("s", ledger.ArchiveMark, old.Epoch))
			if want := (ledger.Position{Epoch: old.Epoch * test.rows, Seq: old.Last * test.rows}); archived != want || err != nil {
				t.Errorf("the old sale is at %+v, want %+v: %v", archived, want, err)
			}
			if n, text := counts.Logged(ledgertest.NotFollowing); n != 0 {
				t.Errorf("the log says %q", text)
			}
		})
	}
}
