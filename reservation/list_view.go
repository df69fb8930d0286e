package reservation

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// listEvery is how often an edge looks for changes of a list; notices come
	// sooner.
	listEvery = 500 * time.Millisecond
)

// ListFilter is what a view fills: something that says for sure that a key is not
// in the list, while others ask it. Its methods are called from one goroutine.
type ListFilter interface {
	// Forms are the forms of entries that the list has: any, buyer, phone, address,
	// device, ip4/24, ip6/64.
	Forms(names []string)
	// Begin begins a new filter for so many entries, beside the one in use.
	Begin(entries int)
	// Fill puts keys into the new filter.
	Fill(keys [][16]byte)
	// Add puts keys that were added to the list into both.
	Add(keys [][16]byte)
	// Swap puts the new filter into use.
	Swap()
	// Drop gives the filter in use up: something may be missing in it.
	Drop()
}

// ListView follows one named list on an edge and keeps a filter of it: by the log of
// changes, from where it was; when too much was missed, by reading the whole list
// while everything is asked in Redis. It is safe for concurrent use.
type ListView struct {
	edge *Edge
	list string
	log  *zap.Logger

	health      atomic.Pointer[health]
	poke        chan struct{}
	start, stop sync.Once
	cancel      context.CancelFunc
	loops       sync.WaitGroup

	follower follower // of the one goroutine that follows
}

// ListView makes a view of a named list. It does nothing before Start.
func (e *Edge) ListView(list string) *ListView {
	v := &ListView{edge: e, list: list, log: e.log.With(zap.String("list", list)), poke: make(chan struct{}, 1)}
	v.health.Store(&health{err: ErrStarting})
	return v
}

// Start begins to follow the list into a filter. Only the first call counts.
func (v *ListView) Start(f ListFilter) {
	v.start.Do(func() {
		v.follower = follower{ListView: v, filter: f}
		ctx, cancel := context.WithCancel(context.Background())
		v.cancel = cancel
		v.loops.Go(func() { v.watch(ctx) })
		v.loops.Go(func() { v.listen(ctx) })
	})
}

// Stop ends what Start began. It may be called again, and without Start. It must
// come before that of the edge.
func (v *ListView) Stop() {
	v.stop.Do(func() {
		v.start.Do(func() {}) // a later Start does nothing
		if v.cancel != nil {
			v.cancel()
			v.loops.Wait()
		}
	})
}

// Ready says why the list cannot be looked up at present; nil: it can. A filter that
// has not heard from Redis for 5 s may lack what others have added.
func (v *ListView) Ready() error {
	h := v.health.Load()
	if h.err != nil && (h.lastWord.IsZero() || !errors.Is(h.err, ErrUnavailable)) {
		return fmt.Errorf("list %s: %w", v.list, h.err)
	}
	if time.Since(h.lastWord) > silence {
		return fmt.Errorf("list %s: %w: no word for %v", v.list, ErrUnavailable, silence)
	}
	return nil
}

// HashText is the key of an entry; the view must be ready.
func (v *ListView) HashText(kind, value string) [16]byte {
	return v.edge.secret.Load().listText(kind, value)
}

// HashPrefix is the key of an entry of kind ip; the view must be ready.
func (v *ListView) HashPrefix(p netip.Prefix) [16]byte { return v.edge.secret.Load().listPrefix(p) }

// HasAny asks Redis whether the list has one of the keys.
func (v *ListView) HasAny(ctx context.Context, keys [][16]byte) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, v.edge.Store.Timeout())
	defer cancel()
	return v.edge.Store.listHasAny(ctx, v.list, keys)
}

// watch follows the list until ctx ends.
func (v *ListView) watch(ctx context.Context) {
	ticker := time.NewTicker(listEvery)
	defer ticker.Stop()
	for {
		v.heard(ctx, v.follower.look(ctx))
		select {
		case <-ticker.C:
		case <-v.poke:
		case <-ctx.Done():
			return
		}
	}
}

// listen hurries the view when somebody has changed the list.
func (v *ListView) listen(ctx context.Context) {
	sub := v.edge.Store.redis.Subscribe(ctx, v.edge.Store.listChannel(v.list))
	defer sub.Close()
	notices := sub.Channel()
	for {
		select {
		case _, ok := <-notices:
			if !ok {
				return
			}
			v.hurry()
		case <-ctx.Done():
			return
		}
	}
}

func (v *ListView) hurry() {
	select {
	case v.poke <- struct{}{}:
	default:
	}
}

// heard remembers what came of the last call to Redis.
func (v *ListView) heard(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, ErrStarting) {
		return
	}
	before := v.health.Load()
	now := &health{err: err, lastWord: before.lastWord}
	if err == nil {
		now.lastWord = time.Now()
	} else {
		(*v.edge.metrics.Load()).RedisFailed("watch")
	}
	v.health.Store(now)
	switch {
	case err != nil && (before.err == nil || before.err == ErrStarting):
		v.log.Error("a named list cannot be followed", zap.Error(err))
	case err == nil && before.err != nil:
		v.log.Info("a named list is followed")
	}
}
