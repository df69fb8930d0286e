package caddymodule

import (
	"github.com/stockgate/stockgate/ledger"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/token"
)

// currentDesk returns the app's desk, nil before Start.
func (a *App) currentDesk() *desk { return a.desk.Load() }

// signer signs reservation tokens. The app has started.
func (a *App) signer() *token.Signer { return a.signing.Load().signer }

// verifier knows the tokens that the app's keys have signed. The app has started.
func (a *App) verifier() *token.Verifier { return a.signing.Load().verifier }

// namedLists are the lists of the configuration.
func (a *App) namedLists() *appLists { return &a.lists }

// ledger is the open ledger; nil: there is none.
func (a *App) ledger() ledger.Ledger { return a.books.ledger() }

// keepsLedger says that the configuration has a ledger.
func (a *App) keepsLedger() bool { return a.books.module != nil }

// redisOptions are those of the Redis with the stock.
func (a *App) redisOptions() *reservation.Options { return &a.options }

// countsRatesApart says that shared rates have a Redis of their own.
func (a *App) countsRatesApart() bool { return a.rates != nil }

// wantOthers says that a gate lets items pass that no sale lists. It is called before Start.
func (a *App) wantOthers() { a.others.wanted = true }

// isOther says that no sale lists an item of the attempt. Where it is not known what is
// listed, nothing is other.
func (a *App) isOther(at *sale.Attempt) bool { return a.others.isOther(at) }

// isListedUnknown says that it is not known what the sales list.
func (a *App) isListedUnknown() bool { return a.others.isUnknown() }
