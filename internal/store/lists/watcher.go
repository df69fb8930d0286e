package lists

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// listEvery is how often an edge checks a list for changes; notices come sooner.
	listEvery = 500 * time.Millisecond
)

// Filter is what a watcher fills: it answers with certainty that a key is not in the list, while
// other goroutines ask it. The watcher calls its methods from one goroutine.
type Filter interface {
	// Forms sets the forms of the list's entries: any, buyer, phone, email, address, device, ip4/24,
	// ip6/64.
	Forms(names []string)
	// Begin starts a new filter for this many entries, beside the one in use.
	Begin(entries int)
	// Fill puts keys into the new filter.
	Fill(keys [][16]byte)
	// Add puts keys that were added to the list into both filters.
	Add(keys [][16]byte)
	// Swap puts the new filter into use.
	Swap()
	// Drop discards the filter in use: it may lack entries.
	Drop()
}

// Watcher follows one named list on an edge and keeps a filter of it. It reads the log of changes
// from its last position. When it has missed too much, it reads the whole list, and meanwhile
// every lookup asks Redis. It is safe for concurrent use.
type Watcher struct {
	lists *Lists
	list  string
	WatcherOptions

	health      atomic.Pointer[shard.Health]
	poke        chan struct{}
	start, stop sync.Once
	cancel      context.CancelFunc
	loops       sync.WaitGroup

	follower follower // of the one goroutine that follows
}

// WatcherOptions is what a watcher needs from its edge. All fields are required.
type WatcherOptions struct {
	// Secret returns what entries are hashed with; nil: it is not known yet.
	Secret func() *identity.Secret
	// Silence returns how long lookups work without an answer from Redis.
	Silence func() time.Duration
	// Failed is called for each check of the list that got no answer.
	Failed func()
	Log    *zap.Logger
}

// NewWatcher makes a watcher of a named list. It does nothing before Start.
func NewWatcher(lists *Lists, list string, o WatcherOptions) *Watcher {
	o.Log = o.Log.With(zap.String("list", list))
	v := &Watcher{lists: lists, list: list, WatcherOptions: o, poke: make(chan struct{}, 1)}
	v.health.Store(&shard.Health{Err: shard.ErrStarting})
	return v
}

// Start starts to follow the list into a filter. Only the first call counts.
func (v *Watcher) Start(f Filter) {
	v.start.Do(func() {
		v.follower = follower{Watcher: v, filter: f}
		ctx, cancel := context.WithCancel(context.Background())
		v.cancel = cancel
		v.loops.Go(func() { v.watch(ctx) })
		v.loops.Go(func() { v.listen(ctx) })
	})
}

// Stop ends what Start began. It may be called again, and without Start. Stop the watcher before
// the edge.
func (v *Watcher) Stop() {
	v.stop.Do(func() {
		v.start.Do(func() {}) // a later Start does nothing
		if v.cancel != nil {
			v.cancel()
			v.loops.Wait()
		}
	})
}

// Ready returns why lookups in the list cannot work at present; nil: they work. A filter that
// has had no answer from Redis for 5 s may lack entries that other edges have added.
func (v *Watcher) Ready() error {
	if err := v.health.Load().ReadyAt(time.Now(), v.Silence()); err != nil {
		return fmt.Errorf("list %s: %w", v.list, err)
	}
	return nil
}

// HashText is the key of an entry; the watcher must be ready.
func (v *Watcher) HashText(kind, value string) [16]byte {
	return v.Secret().ListText(kind, value)
}

// HashPrefix is the key of an entry of kind ip; the watcher must be ready.
func (v *Watcher) HashPrefix(p netip.Prefix) [16]byte { return v.Secret().ListPrefix(p) }

// HasAny asks Redis whether the list has one of the keys. All lookups of an attempt whose first
// one began at a time end within the time that an attempt waits for Redis.
func (v *Watcher) HasAny(ctx context.Context, began time.Time, keys [][16]byte) (bool, error) {
	ctx, cancel := context.WithDeadline(ctx, began.Add(v.lists.shard.Timeout()))
	defer cancel()
	return v.lists.listHasAny(ctx, v.list, keys)
}

// watch follows the list until ctx ends.
func (v *Watcher) watch(ctx context.Context) {
	loop.Every(ctx, listEvery, v.poke, func() { v.heard(ctx, v.follower.look(ctx)) })
}

// listen starts a check of the list as soon as another process has changed it.
func (v *Watcher) listen(ctx context.Context) {
	v.lists.shard.Listen(ctx, v.lists.listChannel(v.list), v.hurry)
}

func (v *Watcher) hurry() {
	select {
	case v.poke <- struct{}{}:
	default:
	}
}

// heard records the result of the last call to Redis. Only the goroutine that follows calls it.
func (v *Watcher) heard(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, shard.ErrStarting) {
		return
	}
	before := v.health.Load()
	now := &shard.Health{Err: err, LastAnswer: before.LastAnswer}
	if err == nil {
		now.LastAnswer = time.Now()
	} else {
		v.Failed()
	}
	v.health.Store(now)
	switch {
	case err != nil && (before.Err == nil || before.Err == shard.ErrStarting):
		v.Log.Error("a named list cannot be followed", zap.Error(err))
	case err == nil && before.Err != nil:
		v.Log.Info("a named list is followed")
	}
}
