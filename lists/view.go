package lists

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/identity"
	"github.com/stockgate/stockgate/shard"
	"go.uber.org/zap"
)

const (
	// listEvery is how often an edge looks for changes of a list; notices come
	// sooner.
	listEvery = 500 * time.Millisecond
)

// ListFilter is what a view fills: something that says for sure that a key is not
// in the list, while others ask it. Its methods are called from one goroutine.
type Filter interface {
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
type View struct {
	lists *Lists
	list  string
	ViewOptions

	health      atomic.Pointer[shard.Health]
	poke        chan struct{}
	start, stop sync.Once
	cancel      context.CancelFunc
	loops       sync.WaitGroup

	follower follower // of the one goroutine that follows
}

// ListViewOptions is what a view needs of its edge. All of it must be set.
type ViewOptions struct {
	// Secret is what entries are hashed with; nil: it is not known yet.
	Secret func() *identity.Secret
	// Failed is called for each look at the list that got no answer.
	Failed func()
	Log    *zap.Logger
}

// NewListView makes a view of a named list. It does nothing before Start.
func NewView(lists *Lists, list string, o ViewOptions) *View {
	o.Log = o.Log.With(zap.String("list", list))
	v := &View{lists: lists, list: list, ViewOptions: o, poke: make(chan struct{}, 1)}
	v.health.Store(&shard.Health{Err: shard.ErrStarting})
	return v
}

// Start begins to follow the list into a filter. Only the first call counts.
func (v *View) Start(f Filter) {
	v.start.Do(func() {
		v.follower = follower{View: v, filter: f}
		ctx, cancel := context.WithCancel(context.Background())
		v.cancel = cancel
		v.loops.Go(func() { v.watch(ctx) })
		v.loops.Go(func() { v.listen(ctx) })
	})
}

// Stop ends what Start began. It may be called again, and without Start. It must
// come before that of the edge.
func (v *View) Stop() {
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
func (v *View) Ready() error {
	h := v.health.Load()
	if h.Err != nil && (h.LastAnswer.IsZero() || !errors.Is(h.Err, shard.ErrUnavailable)) {
		return fmt.Errorf("list %s: %w", v.list, h.Err)
	}
	if time.Since(h.LastAnswer) > shard.Silence {
		return fmt.Errorf("list %s: %w: no word for %v", v.list, shard.ErrUnavailable, shard.Silence)
	}
	return nil
}

// HashText is the key of an entry; the view must be ready.
func (v *View) HashText(kind, value string) [16]byte {
	return v.Secret().ListText(kind, value)
}

// HashPrefix is the key of an entry of kind ip; the view must be ready.
func (v *View) HashPrefix(p netip.Prefix) [16]byte { return v.Secret().ListPrefix(p) }

// HasAny asks Redis whether the list has one of the keys.
func (v *View) HasAny(ctx context.Context, keys [][16]byte) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, v.lists.shard.Timeout())
	defer cancel()
	return v.lists.listHasAny(ctx, v.list, keys)
}

// watch follows the list until ctx ends.
func (v *View) watch(ctx context.Context) {
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
func (v *View) listen(ctx context.Context) {
	sub := v.lists.shard.Redis.Subscribe(ctx, v.lists.listChannel(v.list))
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

func (v *View) hurry() {
	select {
	case v.poke <- struct{}{}:
	default:
	}
}

// heard remembers what came of the last call to Redis.
func (v *View) heard(ctx context.Context, err error) {
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
