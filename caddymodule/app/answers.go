package app

import (
	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/caddymodule/app/signing"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Runtime returns the app's edge runtime, nil before Start.
func (a *App) Runtime() *edgeruntime.Runtime { return a.runtime.Load() }

// Keys returns the keys that sign reservation tokens; nil before Start.
func (a *App) Keys() *signing.Keys { return a.keys.Load() }

// NamedLists returns the lists of the configuration.
func (a *App) NamedLists() *accesslist.Lists { return &a.lists }

// Journals returns what the configuration does with the journals: its ledger, its outbox, its mirror.
func (a *App) Journals() *journals.Service { return &a.journals }

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
