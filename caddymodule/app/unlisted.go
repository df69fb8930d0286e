package app

import (
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/sale"
)

// WantOthers says that a gate lets unlisted items pass. It is called before Start.
func (a *App) WantOthers() { a.unlisted.Want() }

// startUnlisted keeps the lists of the sales in Caddy's storage; no sale of an embedded Redis outlives the process.
func (a *App) startUnlisted(runtimeKey string, d *edgeruntime.Runtime) error {
	storage := a.storage
	if a.isEmbedded() {
		storage = nil
	}
	return a.unlisted.Start(runtimeKey, d, &a.options, storage)
}

// IsOther reports whether the attempt has an unlisted item. It returns false if the lists of
// the sales are unknown.
func (a *App) IsOther(at *sale.Attempt) bool { return a.unlisted.IsOther(at) }

// UnlistedTrouble is why no unlisted item passes; empty: the lists of the sales are known.
func (a *App) UnlistedTrouble() string { return a.unlisted.Trouble() }
