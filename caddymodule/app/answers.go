package app

import (
	"github.com/stockgate/stockgate/caddymodule/app/signing"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Runtime returns the app's edge runtime, nil before Start.
func (a *App) Runtime() *edgeruntime.Runtime { return a.runtime.Load() }

// Keys returns the keys that sign reservation tokens; nil before Start.
func (a *App) Keys() *signing.Keys { return a.keys.Load() }

// NamedLists returns the lists of the configuration.
func (a *App) NamedLists() *accesslist.Lists { return &a.lists }

// Ledger returns the open ledger; nil: there is none.
func (a *App) Ledger() ledger.Ledger { return a.journals.Ledger() }

// History reads movements from the journals of an edge runtime, and older ones from the ledger.
func (a *App) History(d *edgeruntime.Runtime) ledger.History {
	return ledger.History{Journals: d.Store.Journal(), Ledger: a.Ledger()}
}

// KeepsLedger reports whether the configuration has a ledger.
func (a *App) KeepsLedger() bool { return a.journals.KeepsLedger() }

// Mirrors reports whether one of these sales may be mirrored. None, or one with a placeholder, is
// any sale.
func (a *App) Mirrors(sales ...string) bool { return a.journals.Mirrors(sales...) }

// RedisOptions returns the options of the Redis with the stock.
func (a *App) RedisOptions() *shard.Options { return &a.options }

// AtRisk is how many units a failover may lose, as the configuration says it; empty: it does not.
func (a *App) AtRisk() string {
	if a.Redis == nil {
		return ""
	}
	return a.Redis.AtRisk
}

func (a *App) isEmbedded() bool { return a.Redis != nil && a.Redis.Embedded }

// CountsRatesApart reports whether shared rates have a Redis of their own.
func (a *App) CountsRatesApart() bool { return a.rates != nil }

// Settles says that the configuration has a way for the shop or its payments to settle holds. It is called
// before Start.
func (a *App) Settles() { a.settles = true }

// IsSettled reports whether Settles was called.
func (a *App) IsSettled() bool { return a.settles }
