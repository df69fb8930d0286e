package caddymodule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

const (
	// keepEvery is how often the item list is compared with what storage has, and so
	// the least time between two writes.
	keepEvery = 2 * time.Second
	// keepTimeout bounds one access to storage.
	keepTimeout = 10 * time.Second
)

// isOther says that no sale lists an item of the attempt, and that the gate lets
// such attempts pass. Where nobody knows what is listed, nothing is other.
func (g *Gate) isOther(a *sale.Attempt) bool {
	if g.OtherItems != "pass" {
		return false
	}
	k := g.app.others.keeper.Load()
	if k == nil {
		return false
	}
	items := k.items()
	if items == nil {
		return false
	}
	for i := range a.Lines {
		if items.Listed(a.Lines[i].SKU) {
			return false
		}
	}
	return true
}

// others is what one configuration needs for `other_items pass`.
type others struct {
	wanted  bool // a gate lets other items pass
	keeper  atomic.Pointer[itemKeeper]
	poolKey string // of what was taken from the pool
}

// itemKeepers are shared by the configurations that live at the same time.
var itemKeepers = caddy.NewUsagePool()

func (o *others) start(a *App, d *desk) error {
	if !o.wanted {
		return nil
	}
	key := a.poolKey + " " + storageName(a.storage)
	v, _, err := itemKeepers.LoadOrNew(key, func() (caddy.Destructor, error) {
		return startKeeper(d, a.storage, itemsPath(&a.options, a.Redis.Embedded)), nil
	})
	if err != nil {
		return err
	}
	o.poolKey = key
	o.keeper.Store(v.(*itemKeeper))
	return nil
}

func (o *others) close() {
	if o.poolKey != "" {
		_, _ = itemKeepers.Delete(o.poolKey)
		o.poolKey = ""
	}
}

// itemsPath is where in Caddy's storage the item list of a Redis is kept.
func itemsPath(o *reservation.Options, embedded bool) string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %q %t %q %t", o.Addresses, o.Sentinel, o.Cluster, o.Prefix, embedded))
	return "stockgate/items-" + hex.EncodeToString(hash[:8]) + ".json"
}

// storageName tells storages apart. One that cannot say who it is is another one in
// each configuration: then two keepers write the same.
func storageName(s keyStorage) string {
	if named, ok := s.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T %p", s, s)
}

// keptItems are the items of all sales that this edge has heard of.
type keptItems struct {
	Sales map[string]keptSale `json:"sales"`
}

// keptSale is one sale in it.
type keptSale struct {
	Closed bool     `json:"closed,omitempty"`
	SKUs   []string `json:"skus"`
}

// itemKeeper knows which items sales list, also while Redis is away, and after a
// start without it: the list is kept in Caddy's storage.
type itemKeeper struct {
	desk    *desk
	storage keyStorage
	path    string

	now    atomic.Pointer[knownItems]
	making sync.Mutex // one is made at a time

	stored  *knownItems // what storage has; of the one goroutine, as failing is
	failing bool        // the last write failed
	cancel  context.CancelFunc
	loop    sync.WaitGroup
}

// knownItems is what is known at one moment.
type knownItems struct {
	of    *reservation.Catalogue // nil: from storage
	kept  keptItems
	items *filters.Items
}

func makeKnown(of *reservation.Catalogue, kept keptItems) *knownItems {
	return &knownItems{of, kept, filters.NewItems(func(yield func(string) bool) {
		for _, s := range kept.Sales {
			for _, sku := range s.SKUs {
				if !yield(sku) {
					return
				}
			}
		}
	})}
}

func startKeeper(d *desk, storage keyStorage, path string) *itemKeeper {
	k := &itemKeeper{desk: d, storage: storage, path: path}
	k.load()
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	k.loop.Go(func() {
		ticker := time.NewTicker(keepEvery)
		defer ticker.Stop()
		for {
			k.keep()
			select {
			case <-ticker.C:
			case <-ctx.Done():
				k.keep()
				return
			}
		}
	})
	return k
}

// Destruct keeps what is known and ends.
func (k *itemKeeper) Destruct() error {
	k.cancel()
	k.loop.Wait()
	return nil
}

// items are those that sales list; nil: nobody knows.
func (k *itemKeeper) items() *filters.Items {
	now := k.now.Load()
	if now == nil || now.of != k.desk.Catalogue() {
		if now = k.follow(); now == nil {
			return nil
		}
	}
	return now.items
}

// follow brings what is known up to the catalogue of the moment. One that was never
// read is empty, and says nothing.
func (k *itemKeeper) follow() *knownItems {
	k.making.Lock()
	defer k.making.Unlock()
	c, old := k.desk.Catalogue(), k.now.Load()
	if old != nil && old.of == c {
		return old
	}
	if !c.Complete() {
		return nil // any item may be on a sale that this edge cannot read
	}
	// A catalogue that was read before Redis went away still counts.
	if isEmpty(c) && k.desk.Ready() != nil {
		return old
	}
	var before keptItems
	if old != nil {
		before = old.kept
	}
	kept := merge(before, c)
	k.now.Store(makeKnown(c, kept))
	return k.now.Load()
}

func isEmpty(c *reservation.Catalogue) bool {
	for range c.All {
		return false
	}
	return true
}

// merge gives the items of a catalogue, and those of sales that have vanished from
// it without having been closed: a Redis that has lost its data must not make
// ordinary goods of them.
func merge(before keptItems, c *reservation.Catalogue) keptItems {
	kept := keptItems{Sales: make(map[string]keptSale)}
	for id, s := range before.Sales {
		if !s.Closed {
			kept.Sales[id] = s
		}
	}
	for l := range c.All {
		s := keptSale{Closed: l.Status == sale.Closed, SKUs: make([]string, 0, len(l.Sale.Items))}
		for i := range l.Sale.Items {
			s.SKUs = append(s.SKUs, l.Sale.Items[i].SKU)
		}
		slices.Sort(s.SKUs)
		kept.Sales[l.Sale.ID] = s
	}
	return kept
}

// load reads what was kept. Without it nothing is known until Redis answers.
func (k *itemKeeper) load() {
	ctx, cancel := context.WithTimeout(context.Background(), keepTimeout)
	defer cancel()
	raw, err := k.storage.Load(ctx, k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var kept keptItems
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err == nil && kept.Sales == nil {
		err = errors.New("it is no list of items")
	}
	if err != nil {
		keeperLog().Error("the item list in Caddy's storage cannot be read: no other item passes before redis answers",
			zap.String("path", k.path), zap.Error(err))
		return
	}
	k.stored = makeKnown(nil, kept)
	k.now.Store(k.stored)
}

// keep writes what is known, if storage has something else. What cannot be written
// is tried again.
func (k *itemKeeper) keep() {
	k.items()
	now := k.now.Load()
	if now == nil || now == k.stored {
		return
	}
	raw, err := json.Marshal(now.kept)
	if err == nil && (k.stored == nil || !k.stored.kept.equal(now.kept)) {
		ctx, cancel := context.WithTimeout(context.Background(), keepTimeout)
		err = k.storage.Store(ctx, k.path, raw)
		cancel()
	}
	before := k.failing
	k.failing = err != nil
	if err != nil && before {
		return // said
	}
	if err != nil {
		keeperLog().Error("the item list cannot be kept in Caddy's storage", zap.String("path", k.path), zap.Error(err))
		return
	}
	k.stored = now
}

func (k keptItems) equal(other keptItems) bool {
	if len(k.Sales) != len(other.Sales) {
		return false
	}
	for id, s := range k.Sales {
		t, ok := other.Sales[id]
		if !ok || s.Closed != t.Closed || !slices.Equal(s.SKUs, t.SKUs) {
			return false
		}
	}
	return true
}

func keeperLog() *zap.Logger { return caddy.Log().Named("stockgate") }

// Interface guards
var (
	_ caddy.Destructor = (*itemKeeper)(nil)
	_ caddy.Destructor = fileList{}
	_ caddy.Destructor = redisList{}
)
