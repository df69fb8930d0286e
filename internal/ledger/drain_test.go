package ledger_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/test/ledgertest"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

func TestMain(m *testing.M) { stocktest.Main(m) }

// dying wraps a ledger. Now and then the process dies around a call: before it, or after it and
// before its answer.
type dying struct {
	ledger.Ledger
	mu    sync.Mutex
	calls int
	die   func()
}

func (d *dying) Append(ctx context.Context, sale, owner string, b *ledger.Batch) error {
	d.mu.Lock()
	d.calls++
	n := d.calls
	d.mu.Unlock()
	if n%7 == 3 {
		d.die()
		return context.Canceled
	}
	err := d.Ledger.Append(ctx, sale, owner, b)
	if n%7 == 5 {
		d.die()
		return context.Canceled
	}
	return err
}

// Giveup does nothing: a dead process does not give up its lease.
func (d *dying) Giveup(context.Context, string, string) error { return nil }

// Acquire takes a very short lease, so that no drainer waits for a dead one.
func (d *dying) Acquire(ctx context.Context, sale, owner string, _ time.Duration) (ledger.Position, bool, error) {
	return d.Ledger.Acquire(ctx, sale, owner, 20*time.Millisecond)
}

// Several drainers copy one sale while it sells, and die around their calls: the ledger has
// each movement once and in order, and agrees with Redis.
func TestSeveralDrainers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := ledgertest.NewSeller(t, b, 10_000)
		file := filepath.Join(t.TempDir(), "ledger.db")
		counts := ledgertest.NewCounts()
		stop, over := make(chan struct{}), sync.WaitGroup{}
		for range 3 {
			over.Go(func() {
				for {
					died := make(chan struct{})
					l := &dying{Ledger: ledgertest.OpenFile(t, file), die: sync.OnceFunc(func() { close(died) })}
					end := s.Drain(l, counts)
					select {
					case <-died:
						end()
						continue
					case <-stop:
						end()
						return
					}
				}
			})
		}
		var sellers sync.WaitGroup
		for range 4 {
			sellers.Go(func() { s.Sell(100) })
		}
		sellers.Wait()
		s.UntilDrained(ledgertest.OpenFile(t, file))
		close(stop)
		over.Wait()
	})
}

// A Redis that has lost what the ledger has, as after a failover, is reported at once: when it
// is behind, and when it has given the same numbers to other movements. The ledger does not
// change.
func TestLostMovements(t *testing.T) {
	for name, test := range map[string]struct {
		again int // sold after the loss
		want  string
	}{
		"behind":    {0, "the journal of sale s ends before entry"},
		"same":      {20, "disagree about entry"},
		"far ahead": {60, "disagree about entry"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := ledgertest.NewSeller(t, server, 1000)
			c := server.Client()
			l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
			counts := ledgertest.NewCounts()
			s.Sell(20)
			end := s.Drain(l, counts)
			s.UntilDrained(l)
			before := ledgertest.Backup(t, c)
			s.Sell(20)
			s.UntilDrained(l)
			end() // so that no drainer reads in between
			at, err := l.Position(ledgertest.Soon(t), "s")
			if err != nil {
				t.Fatal(err)
			}
			ledgertest.Restore(t, c, before)
			s.Sell(test.again)
			s.Drain(l, counts)
			ledgertest.Eventually(t, "it is logged", func() bool { n, _ := counts.Logged(ledgertest.NotFollowing); return n > 0 })
			if _, text := counts.Logged(ledgertest.NotFollowing); !strings.Contains(text, test.want) {
				t.Errorf("it says %q, not %q", text, test.want)
			}
			if after, err := l.Position(ledgertest.Soon(t), "s"); after != at || err != nil {
				t.Errorf("the ledger has moved from %+v to %+v, error %v", at, after, err)
			}
			if counts.Failed("journal") == 0 {
				t.Error("the failure is not counted")
			}
		})
	}
}

// A sale that Redis has lost and that was made again is not mixed with the one in the ledger.
// Other sales continue.
func TestAnotherEpoch(t *testing.T) {
	server := redistest.Start(t)
	s := ledgertest.NewSeller(t, server, 1000)
	l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	counts := ledgertest.NewCounts()
	s.Drain(l, counts)
	s.Sell(10)
	s.UntilDrained(l)
	if err := server.Client().FlushAll(ledgertest.Soon(t)).Err(); err != nil {
		t.Fatal(err)
	}
	s.Load(500)
	ledgertest.Eventually(t, "it is logged", func() bool {
		_, text := counts.Logged(ledgertest.NotFollowing)
		return strings.Contains(text, "redis has lost sale s") && strings.Contains(text, "caddy stockgate rebuild s --from ledger")
	})
	stock, err := l.Stock(ledgertest.Soon(t), "s")
	if err != nil || len(stock) != 1 || stock[0].Stock > 1000 {
		t.Errorf("the ledger has %+v, error %v", stock, err)
	}
}

// losing wraps a ledger and loses the answer of every third append.
type losing struct {
	ledger.Ledger
	calls atomic.Int64
}

func (l *losing) Append(ctx context.Context, sale, owner string, b *ledger.Batch) error {
	err := l.Ledger.Append(ctx, sale, owner, b)
	if err == nil && l.calls.Add(1)%3 == 0 {
		return context.DeadlineExceeded
	}
	return err
}

// When the answer to an append is lost, the drainer reads whether the batch was committed.
func TestLostAnswers(t *testing.T) {
	s := ledgertest.NewSeller(t, redistest.Start(t), 1000)
	l := ledgertest.OpenFile(t, filepath.Join(t.TempDir(), "ledger.db"))
	counts := ledgertest.NewCounts()
	losses := &losing{Ledger: l}
	end := s.Drain(losses, counts)
	for losses.calls.Load() < 7 {
		s.Sell(5)
		s.UntilDrained(l)
	}
	end()
	if failed, lost := counts.Failed("ledger"), int(losses.calls.Load()/3); failed != lost {
		t.Errorf("%d answers were lost, and %d appends failed: a batch was appended again", lost, failed)
	}
}
