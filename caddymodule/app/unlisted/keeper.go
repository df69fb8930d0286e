package unlisted

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
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// keepEvery is how often the sales are compared with what storage has, and so the
	// minimum time between two writes.
	keepEvery = 2 * time.Second
	// keepTimeout bounds one access to storage.
	keepTimeout = 10 * time.Second
)

// itemKeepers are shared by the configurations that exist at the same time.
var itemKeepers = caddy.NewUsagePool()

// itemsPath returns the path in Caddy's storage at which the sales of a Redis are kept,
// with or without their items.
func itemsPath(o *shard.Options, items bool) string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %q %t %q false", o.Addresses, o.Sentinel, o.Cluster, o.Prefix))
	what := "sales"
	if items {
		what = "items"
	}
	return "stockgate/" + what + "-" + hex.EncodeToString(hash[:8]) + ".json"
}

// storageName identifies a storage. A storage without a name counts as a different one in
// each configuration; two keepers then write the same data.
func storageName(s certmagic.Storage) string {
	if named, ok := s.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T %p", s, s)
}

// keptItems are the sales that this edge knows.
type keptItems struct {
	Sales map[string]keptSale `json:"sales"`
}

// keptSale is one sale in keptItems. Without SKUs its items are unknown.
type keptSale struct {
	Closed bool `json:"closed,omitempty"`
	// SKUs are all names of its items, their ids too.
	SKUs []string `json:"skus,omitempty"`
}

// itemKeeper knows which sales exist and which items they list, even while Redis does not
// answer, or after a start without Redis: it keeps that in Caddy's storage. An edge that
// starts with an emptied Redis thus notices that sales are missing.
type itemKeeper struct {
	runtime *edgeruntime.Runtime
	storage certmagic.Storage // nil: nothing is kept
	path    string
	items   bool // a gate lets unlisted items pass: the items of the sales are kept too

	now    atomic.Pointer[knownItems]
	making sync.Mutex // one is made at a time

	stored  *knownItems // what storage has; of the one goroutine, as failing is
	failing bool        // the last write failed
	stopped bool        // logged that no unlisted item passes
	cancel  context.CancelFunc
	loop    sync.WaitGroup
}

// knownItems is what is known at one moment.
type knownItems struct {
	of    *edge.Catalogue // nil: from storage
	kept  keptItems
	items *filters.Items // nil: not known
}

// makeKnown collects the items that sales list. If a sale has no SKUs, any item may be one
// of its items, so the items are unknown. They are unknown too if there has never been a
// sale: an emptied Redis looks like a new one.
func makeKnown(of *edge.Catalogue, kept keptItems) *knownItems {
	if len(kept.Sales) == 0 && (of == nil || !of.Cleared()) {
		return &knownItems{of, kept, nil}
	}
	for _, s := range kept.Sales {
		if len(s.SKUs) == 0 {
			return &knownItems{of, kept, nil}
		}
	}
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

// start tells the edge what was kept, and keeps what it learns.
func (k *itemKeeper) start() {
	if k.storage != nil {
		k.load()
		k.remind()
	}
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	k.loop.Go(func() {
		loop.Every(ctx, keepEvery, nil, k.keep)
		k.keep()
	})
}

// remind tells the edge which sales Redis must have. If Redis answers, the edge looks for
// them before the first attempt.
func (k *itemKeeper) remind() {
	known := k.now.Load()
	if known == nil {
		return
	}
	var ids []string
	for id, s := range known.kept.Sales {
		if !s.Closed {
			ids = append(ids, id)
		}
	}
	if k.runtime.Remember(ids...) && k.runtime.Ready() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), k.runtime.Store.Shard().Timeout())
		defer cancel()
		_ = k.runtime.Refresh(ctx) // the log and Ready report errors
	}
}

// Destruct writes what is known and stops.
func (k *itemKeeper) Destruct() error {
	k.cancel()
	k.loop.Wait()
	return nil
}

// listed returns the items that sales list; nil: they are unknown.
func (k *itemKeeper) listed() *filters.Items {
	now := k.now.Load()
	if now == nil || now.of != k.runtime.Catalogue() {
		if now = k.follow(); now == nil {
			return nil
		}
	}
	return now.items
}

// follow brings what is known up to date with the current catalogue. A catalogue that was
// never read is empty and tells nothing.
func (k *itemKeeper) follow() *knownItems {
	k.making.Lock()
	defer k.making.Unlock()
	c, old := k.runtime.Catalogue(), k.now.Load()
	if old != nil && old.of == c {
		return old
	}
	// A catalogue that was read before Redis stopped answering is still valid.
	if isEmpty(c) && k.runtime.Ready() != nil {
		return old
	}
	var before keptItems
	if old != nil {
		before = old.kept
	}
	k.now.Store(makeKnown(c, k.merge(before, c)))
	return k.now.Load()
}

func isEmpty(c *edge.Catalogue) bool {
	for range c.All {
		return false
	}
	return true
}

// merge returns the sales of a catalogue. A sale that Redis has lost stays as it was known:
// its items must not become unlisted.
func (k *itemKeeper) merge(before keptItems, c *edge.Catalogue) keptItems {
	kept := keptItems{Sales: make(map[string]keptSale)}
	for id, s := range before.Sales {
		if !s.Closed {
			kept.Sales[id] = s
		}
	}
	for l := range c.All {
		if old, ok := before.Sales[l.Sale.ID]; ok && l.Lost() {
			kept.Sales[l.Sale.ID] = old
			continue
		}
		s := keptSale{Closed: l.Status == sale.Closed}
		if k.items {
			s.SKUs = make([]string, 0, len(l.Sale.Items))
			for i := range l.Sale.Items {
				s.SKUs = slices.AppendSeq(s.SKUs, l.Sale.Items[i].Names)
			}
			slices.Sort(s.SKUs)
		}
		kept.Sales[l.Sale.ID] = s
	}
	return kept
}

// load reads what was kept. Without it, nothing is known until Redis answers.
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
		keeperLog().Error("the list of sales in Caddy's storage cannot be read: what redis has lost may not be missed, and no other item passes before redis answers",
			zap.String("path", k.path), zap.Error(err))
		return
	}
	k.stored = makeKnown(nil, kept)
	k.now.Store(k.stored)
}

// keep writes what is known, unless storage already has it. A failed write is retried.
func (k *itemKeeper) keep() {
	k.say(k.listed() == nil)
	now := k.now.Load()
	if now == nil || now == k.stored || k.storage == nil {
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
		return // already logged
	}
	if err != nil {
		keeperLog().Error("the list of sales cannot be kept in Caddy's storage", zap.String("path", k.path), zap.Error(err))
		return
	}
	k.stored = now
}

// say logs once that unlisted items do not pass although Redis answers, and why.
func (k *itemKeeper) say(unknown bool) {
	if unknown = unknown && k.items && k.runtime.Ready() == nil; unknown && !k.stopped {
		keeperLog().Error(nonePasses)
	} else if k.stopped && !unknown {
		keeperLog().Info("`other_items pass`: what the sales list is known")
	}
	k.stopped = unknown
}

// nonePasses tells operators why `other_items pass` lets nothing pass, and what to do.
const nonePasses = "`other_items pass` lets nothing pass, because it is not known what the sales list: no sale was ever loaded into this redis, or one is lost or cannot be read; " +
	"load the first sale, a draft will do, or restore what is lost"

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
)
