// Package unlisted tells which items no sale lists, even while Redis does not answer.
package unlisted

import (
	"fmt"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Memory is what one configuration remembers of the sales, to tell unlisted items.
type Memory struct {
	wanted  bool // a gate lets unlisted items pass
	keeper  atomic.Pointer[itemKeeper]
	poolKey string // of the pooled keeper
}

// Want says that a gate lets unlisted items pass. It is called before Start.
func (m *Memory) Want() { m.wanted = true }

// Start tells an edge runtime which sales Redis must have, and keeps what it learns. Without a storage nothing is
// kept.
func (m *Memory) Start(runtimeKey string, d *edgeruntime.Runtime, redis *shard.Options, storage certmagic.Storage) error {
	key := fmt.Sprintf("%s %s %t", runtimeKey, storageName(storage), m.wanted)
	v, _, err := itemKeepers.LoadOrNew(key, func() (caddy.Destructor, error) {
		k := &itemKeeper{runtime: d, storage: storage, path: itemsPath(redis, m.wanted), items: m.wanted}
		k.start()
		return k, nil
	})
	if err != nil {
		return err
	}
	m.poolKey = key
	m.keeper.Store(v.(*itemKeeper))
	return nil
}

// IsOther reports whether the attempt has an unlisted item. It returns false if the lists of
// the sales are unknown.
func (m *Memory) IsOther(a *sale.Attempt) bool {
	k := m.keeper.Load()
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

// Trouble is why no unlisted item passes; empty: the lists of the sales are known.
func (m *Memory) Trouble() string {
	if k := m.keeper.Load(); k == nil || k.listed() == nil {
		return nonePasses
	}
	return ""
}

// Close gives the shared keeper back, once.
func (m *Memory) Close() {
	if m.poolKey != "" {
		_, _ = itemKeepers.Delete(m.poolKey)
		m.poolKey = ""
	}
}
