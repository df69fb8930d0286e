package app

import (
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/lists"
	"github.com/stockgate/stockgate/ledger"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/shard"
	"github.com/stockgate/stockgate/token"
)

// Desk returns the app's desk, nil before Start.
func (a *App) Runtime() *edgeruntime.Runtime { return a.desk.Load() }

// Signer signs reservation tokens. The app has started.
func (a *App) Signer() *token.Signer { return a.signing.Load().signer }

// Verifier knows the tokens that the app's keys have signed. The app has started.
func (a *App) Verifier() *token.Verifier { return a.signing.Load().verifier }

// NamedLists are the lists of the configuration.
func (a *App) NamedLists() *lists.Lists { return &a.lists }

// Ledger is the open ledger; nil: there is none.
func (a *App) Ledger() ledger.Ledger { return a.journals.ledger() }

// KeepsLedger says that the configuration has a ledger.
func (a *App) KeepsLedger() bool { return a.journals.module != nil }

// RedisOptions are those of the Redis with the stock.
func (a *App) RedisOptions() *shard.Options { return &a.options }

// CountsRatesApart says that shared rates have a Redis of their own.
func (a *App) CountsRatesApart() bool { return a.rates != nil }

// WantOthers says that a gate lets items pass that no sale lists. It is called before Start.
func (a *App) WantOthers() { a.unlistedItems.wanted = true }

// IsOther says that no sale lists an item of the attempt. Where it is not known what is
// listed, nothing is other.
func (a *App) IsOther(at *sale.Attempt) bool { return a.unlistedItems.isOther(at) }

// IsListedUnknown says that it is not known what the sales list.
func (a *App) IsListedUnknown() bool { return a.unlistedItems.isUnknown() }
