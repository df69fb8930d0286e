package app

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// bypassEvery is how often counts are kept, and how soon after its end a bypass is settled.
	bypassEvery = time.Second
	// bypassCall bounds what Redis is asked at a time.
	bypassCall = 5 * time.Second
)

// bypassKeeper keeps the counts of bypasses, tells the other edges, and settles those that have ended, for one
// configuration.
type bypassKeeper struct {
	*bypasses
	runtime *edgeruntime.Runtime
	stop    context.CancelFunc
	done    sync.WaitGroup
	said    string
}

func (bs *bypasses) start(log *zap.Logger, d *edgeruntime.Runtime) *bypassKeeper {
	bs.load(log)
	ctx, cancel := context.WithCancel(context.Background())
	k := &bypassKeeper{bypasses: bs, runtime: d, stop: cancel}
	k.done.Go(func() { loop.Every(ctx, bypassEvery, bs.wake, func() { k.round(ctx) }) })
	return k
}

func (k *bypassKeeper) close() {
	if k != nil {
		k.stop()
		k.done.Wait()
	}
}

// round does what is to be done now. Redis may be away.
func (k *bypassKeeper) round(ctx context.Context) {
	k.settling.Lock()
	defer k.settling.Unlock()
	ctx, cancel := context.WithTimeout(ctx, bypassCall)
	defer cancel()
	k.mu.Lock()
	all := k.periods()
	err := k.save()
	k.mu.Unlock()
	if err != nil {
		k.say("the counts of a bypass", err)
	}
	if !k.runtime.Begin() {
		return
	}
	defer k.runtime.End()
	for i := range all {
		if p := &all[i]; p.Ended {
			k.settle(ctx, p)
		} else if err := k.tell(ctx, p); err != nil {
			k.say("telling the other edges of a bypass", err)
		}
	}
	k.hear(ctx)
}

func (k *bypassKeeper) say(what string, err error) {
	if text := what + err.Error(); text != k.said && !errors.Is(err, context.Canceled) {
		k.said = text
		k.log.Load().Warn(what+" has failed, and is tried again", zap.Error(err))
	}
}

// tell tells the other edges.
func (k *bypassKeeper) tell(ctx context.Context, p *adminapi.Bypass) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return k.runtime.Client().NoteBypass(ctx, p.ID, string(text))
}

// hear reads what the other edges have told. Without an answer the last one stands.
func (k *bypassKeeper) hear(ctx context.Context) {
	told, err := k.runtime.Client().Bypasses(ctx)
	if err != nil {
		return
	}
	var all []adminapi.Bypass
	for _, text := range told {
		var p adminapi.Bypass
		if json.Unmarshal([]byte(text), &p) == nil {
			all = append(all, p)
		}
	}
	k.elsewhere.Store(&all)
}

// settle pauses the sales of a bypass that has ended, before its gate decides again: Redis does not know what the shop has
// sold. Nothing was sold if no order has passed.
func (k *bypassKeeper) settle(ctx context.Context, p *adminapi.Bypass) {
	log := k.log.Load().With(zap.String("gate", p.Gate), zap.Int64("orders", p.Orders))
	var paused []string
	if !p.Check && (p.Orders > 0 || p.Restarted) {
		ids, err := k.salesOf(ctx, p)
		for _, id := range ids {
			_, e := k.runtime.Store.MarkBypassed(ctx, id, p.Until, bypassText(p))
			switch {
			case e == nil:
				paused = append(paused, id)
			case !errors.Is(e, shard.ErrNoSale):
				err = errors.Join(err, e)
			}
		}
		if err != nil {
			k.say("pausing the sales of a bypass that has ended", err)
			return
		}
	}
	if err := k.runtime.Client().DropBypass(ctx, p.ID); err != nil && len(paused) > 0 {
		k.say("telling the other edges of the end of a bypass", err)
		return
	}
	k.forget(p)
	if len(paused) > 0 {
		log.Warn("a bypass has ended, and its sales are paused: compare them with the shop, and open them", zap.Strings("sales", paused))
		_ = k.runtime.Refresh(ctx) // this edge must not sell before it knows; the log and Ready report errors
		return
	}
	log.Info("a bypass has ended: no order has passed that a gate would have reserved")
}

// salesOf returns the sales that the gate of a bypass sells.
func (k *bypassKeeper) salesOf(ctx context.Context, p *adminapi.Bypass) ([]string, error) {
	if len(p.Sales) > 0 {
		return p.Sales, nil
	}
	return k.runtime.Store.Journal().Sales(ctx)
}

// forget ends a bypass, unless it has begun again.
func (k *bypassKeeper) forget(p *adminapi.Bypass) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.of(p.Gate)
	if now := b.now.Load(); now == nil || now.ID != p.ID || now.isOn() {
		return
	}
	b.now.Store(nil)
	b.orders.Store(0)
	b.taken.Store(0)
	if err := k.save(); err != nil {
		k.say("forgetting a bypass", err)
	}
}

// BypassedGates are the names of the gates of this edge whose orders pass.
func (a *App) BypassedGates() (names []string) {
	own, _ := a.OwnBypasses()
	for _, p := range own {
		if !p.Ended && !p.Check && !slices.Contains(names, p.Gate) {
			names = append(names, p.Gate)
		}
	}
	return names
}
