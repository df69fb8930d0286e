package app

import (
	"fmt"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/sale"
)

// unlistedItems is what one configuration remembers of the sales, to tell unlisted items.
type unlistedItems struct {
	wanted  bool // a gate lets unlisted items pass
	keeper  atomic.Pointer[itemKeeper]
	poolKey string // of the pooled keeper
}

func (o *unlistedItems) start(a *App, d *edgeruntime.Runtime) error {
	key := fmt.Sprintf("%s %s %t", a.poolKey, storageName(a.storage), o.wanted)
	v, _, err := itemKeepers.LoadOrNew(key, func() (caddy.Destructor, error) {
		k := &itemKeeper{runtime: d, storage: a.storage, path: itemsPath(&a.options, o.wanted), items: o.wanted}
		if a.isEmbedded() {
			k.storage = nil // with an embedded Redis, no sale outlives the process
		}
		k.start()
		return k, nil
	})
	if err != nil {
		return err
	}
	o.poolKey = key
	o.keeper.Store(v.(*itemKeeper))
	return nil
}

// isOther reports whether the attempt has an unlisted item. It returns false if the lists of
// the sales are unknown.
func (o *unlistedItems) isOther(a *sale.Attempt) bool {
	k := o.keeper.Load()
	if k == nil {
		return false
	}
	items := k.listed()
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

// isUnknown reports whether the lists of the sales are unknown.
func (o *unlistedItems) isUnknown() bool {
	k := o.keeper.Load()
	return k == nil || k.listed() == nil
}

func (o *unlistedItems) close() {
	if o.poolKey != "" {
		_, _ = itemKeepers.Delete(o.poolKey)
		o.poolKey = ""
	}
}
