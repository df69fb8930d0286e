// Package risk counts the units at risk of each sale: those that were sold and that
// neither every replica nor the ledger has yet. A failover may lose them.
package risk

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// every is the time between two heartbeats while something is at risk.
	every = 100 * time.Millisecond
	// patience is how long a batch of reserve requests waits for a heartbeat when the bound is
	// reached.
	patience = 100 * time.Millisecond
	// calm is how long nothing must have been refused until the log says that it is over.
	calm = 5 * time.Second
)

// Tracker counts what is at risk on one Redis or cluster. It is safe for concurrent use.
type Tracker struct {
	shard    *shard.Client
	bound    Bound
	log      *zap.Logger
	off      bool // the embedded server has no replicas
	now      func() time.Duration
	goneFor  time.Duration
	accounts sync.Map // sale id → *account
	nodes    map[string]*node
	beats    sync.WaitGroup
	wake     chan struct{}
	failed   atomic.Pointer[error] // why heartbeats fail; nil: they do not
}

// started is where the clock begins; 0 means that nothing is at risk.
var started = time.Now().Add(-time.Second)

// New makes a tracker, which learns nothing until Run.
func New(s *shard.Client, bound Bound, log *zap.Logger) *Tracker {
	return &Tracker{
		shard: s, bound: bound, log: log, off: s.Embedded(), goneFor: goneFor,
		now:   func() time.Duration { return time.Since(started) },
		nodes: make(map[string]*node), wake: make(chan struct{}, 1),
	}
}

// State is what is at risk of a sale, as far as this edge knows.
type State struct {
	// Units were sold, and neither every replica nor the ledger has them. Without replicas it is 0: no
	// server can take over that lacks them.
	Units int64
	// Age is how long the oldest of them has been at risk; 0: none is.
	Age time.Duration
	// Partial says that this edge has not counted all of them yet, because it has started, or
	// has lost the journal, and the replicas have not answered since.
	Partial bool
	// Stopped says that the bound is reached: nothing is sold.
	Stopped bool
	// Err is why heartbeats fail at present; nil: they do not. What was sold meanwhile counts
	// as at risk.
	Err error
}

// Of returns what is at risk of a sale.
func (t *Tracker) Of(sale string) State {
	v, ok := t.accounts.Load(sale)
	if !ok {
		return State{Partial: !t.off}
	}
	a := v.(*account)
	s := State{Units: a.units.Load(), Partial: a.unknown.Load(), Stopped: a.stopped.Load()}
	if failed := t.failed.Load(); failed != nil {
		s.Err = *failed
	}
	if s.Err == nil && a.alone.Load() { // what was sold since the last heartbeat waits for nothing
		s.Units = 0
		return s
	}
	if oldest := a.oldest.Load(); oldest > 0 {
		s.Age = max(t.now()-time.Duration(oldest), 0)
	}
	return s
}

func (t *Tracker) account(sale string) *account {
	if v, ok := t.accounts.Load(sale); ok {
		return v.(*account)
	}
	v, _ := t.accounts.LoadOrStore(sale, newAccount())
	return v.(*account)
}

// Sold counts units of a sale that this edge has sold: the journal has them up to seq. It
// must be called before a client hears of them.
func (t *Tracker) Sold(sale string, units, seq int64) {
	if !t.off {
		t.account(sale).sold(seq, units, t.now())
	}
}

// Read counts units that the journal of a sale says were sold since the last call, up to
// seq.
func (t *Tracker) Read(sale string, units, seq int64) {
	if !t.off {
		t.account(sale).readTo(seq, units, t.now())
	}
}

// Now is the time by the tracker's clock.
func (t *Tracker) Now() time.Duration { return t.now() }

// Began says that the journal of a sale is followed from seq on, and was not read before.
// asked is when the journal was asked for seq, by Now.
func (t *Tracker) Began(sale, epoch string, seq int64, asked time.Duration) {
	if !t.off {
		t.account(sale).began(epoch, seq, asked)
		t.hurry()
	}
}

// Admit reports which of n reserve requests of a sale may be sent now, in their order; nil:
// all. units returns the units of each. At the bound it waits for one heartbeat, so that
// replicas that keep up stop nothing.
func (t *Tracker) Admit(ctx context.Context, sale string, n int, units func(int) int64) []bool {
	if t.bound.Any() || t.off {
		return nil
	}
	a := t.account(sale)
	may, all := a.admit(t.bound, t.now(), n, units)
	if !all && !a.stopped.Load() {
		if t.await(ctx, a); ctx.Err() == nil {
			may, all = a.admit(t.bound, t.now(), n, units)
		}
	}
	if all {
		return nil
	}
	a.refused.Store(int64(t.now()))
	a.stopped.Store(true)
	if a.logged.CompareAndSwap(false, true) {
		s := t.Of(sale)
		t.log.Warn("not selling: as much is at risk as at_risk allows, because the replicas do not have what was sold; see that they are connected and keep up",
			zap.String("sale", sale), zap.Stringer("at_risk", t.bound), zap.Int64("units_at_risk", s.Units), zap.Duration("oldest", s.Age))
	}
	return may
}

// admit reports which requests there is room for, and whether that is all of them.
func (a *account) admit(b Bound, now time.Duration, n int, units func(int) int64) (may []bool, all bool) {
	room := a.room(b, now)
	may, all = make([]bool, n), true
	for i := range n {
		if want := units(i); want <= room {
			may[i], room = true, room-want
		} else {
			all = false
		}
	}
	return may, all
}

// await waits until something has become safe, for a short time.
func (t *Tracker) await(ctx context.Context, a *account) {
	proof := a.nextProof()
	t.hurry()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-proof:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// hurry makes the next heartbeat come at once.
func (t *Tracker) hurry() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// settle notes for every sale whether it sells again, and logs that once it lasts.
func (t *Tracker) settle() {
	for sale, a := range t.all {
		if a.stopped.Load() && a.room(t.bound, t.now()) > 0 {
			a.stopped.Store(false)
		}
		if a.logged.Load() && !a.stopped.Load() && t.now()-time.Duration(a.refused.Load()) > calm && a.logged.CompareAndSwap(true, false) {
			t.log.Info("selling: the replicas have what was sold", zap.String("sale", sale))
		}
	}
}

// all calls yield for every sale.
func (t *Tracker) all(yield func(string, *account) bool) {
	t.accounts.Range(func(k, v any) bool { return yield(k.(string), v.(*account)) })
}
