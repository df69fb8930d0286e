// Package app is the Caddy app of Stockgate: what all gates of a configuration share. It
// has the connection to Redis, the signing keys, the ledger, the outbox, and the metrics
// that are read from them.
package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/caddymodule/app/signing"
	"github.com/stockgate/stockgate/caddymodule/app/unlisted"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/overviewcache"
	"github.com/stockgate/stockgate/internal/edge/risk"
	"github.com/stockgate/stockgate/internal/store/shard"
)

func init() { caddy.RegisterModule(new(App)) }

// App holds what all gates of a configuration share: the Redis with the stock and
// the keys that sign reservation tokens.
type App struct {
	// Redis is the Redis with the stock; this or `store` is required. `embedded`, to try things, ends with this process and
	// sells to clients of this machine only.
	Redis *Redis `json:"redis,omitempty"`
	// Store is a directory in which a redis-server that Caddy runs keeps the stock of one edge.
	Store *OwnStore `json:"store,omitempty"`
	// RateRedis counts shared rates, so that attackers' keys share no memory with the stock. Default: `redis`.
	//
	// It needs no persistence, and may evict keys; while it does not answer, gates with a shared rate answer 503.
	// It takes neither embedded, nor replica_acks, nor at_risk.
	RateRedis *Redis `json:"rate_redis,omitempty"`
	// KeyPrefix begins every key in Redis. Default: `stockgate`.
	KeyPrefix string `json:"key_prefix,omitempty"`
	// Token is how reservation tokens are signed.
	Token Token `json:"token,omitzero"`
	// Lists are for `deny` and `allow`; a name has 1 to 64 of `a-z 0-9 _ -`.
	//
	// They have buyers, phones, e-mail addresses, devices and addresses.
	Lists map[string]accesslist.Source `json:"lists,omitempty"`
	// Identities are which spellings are one person. Default: nothing is guessed.
	//
	// All edges on one Redis need the same.
	Identities *IdentitySpellings `json:"identities,omitempty"`
	// Messages are the sentences of refusals, for all gates and guards. Default: English and Chinese.
	Messages *directive.Messages `json:"messages,omitempty"`
	// LedgerRaw is a database with a copy of every movement. Default: none.
	LedgerRaw json.RawMessage `json:"ledger,omitempty" caddy:"namespace=stockgate.ledgers inline_key=driver"`
	// Journal is how long movements stay in Redis.
	Journal journals.Journal `json:"journal,omitzero"`
	// Outbox posts every movement to a receiver. Default: none.
	Outbox *journals.Outbox `json:"outbox,omitempty"`
	// MirrorRaw keeps keys of the shop's own Redis current. Default: none.
	MirrorRaw json.RawMessage `json:"mirror,omitempty"`
	// NotifyRaw tells operators what happens in a sale. Default: none.
	NotifyRaw json.RawMessage `json:"notify,omitempty"`

	journals      journals.Service
	lists         accesslist.Lists
	unlisted      unlisted.Memory
	settles       bool // by stockgate_api or stockgate_resolve
	log           *zap.Logger
	storage       certmagic.Storage
	options       shard.Options
	rates         *shard.Options // nil: those of options
	atRisk        risk.Bound
	keys          atomic.Pointer[signing.Keys]        // nil before Start
	poolKey       string                              // of the pooled edge runtime
	runtime       atomic.Pointer[edgeruntime.Runtime] // nil before Start
	parts         parts
	notifier      Notifier // nil: none
	fast          listeners
	bypasses      *bypasses
	bypassKeeper  *bypassKeeper
	closeBypasses sync.Once
	ruleTeller    *ruleTeller
	chosen        chosenAddresses
	// refunds has what Health says of orders without stock.
	refunds atomic.Pointer[overviewcache.Cache]
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "stockgate", New: func() caddy.Module { return new(App) }}
}

// Provision reads the configuration and the lists that are files. It neither connects to
// Redis nor touches storage, because `caddy validate` must not.
func (a *App) Provision(ctx caddy.Context) error {
	a.log = ctx.Logger()
	a.storage = ctx.Storage()
	if err := meter.Register(ctx.GetMetricsRegistry(), collectors()...); err != nil {
		return err
	}
	var err error
	if a.bypasses, err = openBypasses(); err != nil {
		return err
	}
	if err := a.Token.provision(); err != nil {
		return fmt.Errorf("token: %w", err)
	}
	if err := a.provisionStock(); err != nil {
		return err
	}
	if a.RateRedis != nil {
		if a.RateRedis.Embedded || a.RateRedis.ReplicaAcks != 0 || a.RateRedis.AtRisk != "" || a.RateRedis.FenceWait != 0 || a.RateRedis.FenceOff {
			return fmt.Errorf("rate_redis: neither embedded, replica_acks, at_risk nor fence goes with it")
		}
		rates, err := a.RateRedis.options(a.KeyPrefix)
		if err != nil {
			return fmt.Errorf("rate_%w", err)
		}
		a.rates = &rates
	}
	if err := a.provisionJournals(ctx); err != nil {
		return err
	}
	if err := a.Messages.Check(); err != nil {
		return err
	}
	if err := a.provisionNotify(ctx); err != nil {
		return err
	}
	rules, err := a.IdentityRules()
	if err != nil {
		return err
	}
	return a.lists.Open(a.Lists, rules)
}

// provisionJournals loads the ledger's module and provisions the services of the journals.
func (a *App) provisionJournals(ctx caddy.Context) error {
	c := journals.Settings{Journal: a.Journal, Outbox: a.Outbox, Mirror: a.MirrorRaw}
	if len(a.LedgerRaw) > 0 {
		var err error
		if c.Ledger, err = ctx.LoadModule(a, "LedgerRaw"); err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
	}
	return a.journals.Provision(ctx, &c)
}

var errStockTwice = errors.New("`store` and `redis` both say where the stock is: write `store` if this machine alone sells, and `redis` if several edges do")

// provisionStock reads where the stock is: in a Redis, or in a server of this process's own.
func (a *App) provisionStock() (err error) {
	switch {
	case a.Redis != nil && a.Store != nil:
		return errStockTwice
	case a.Store != nil:
		a.options, err = a.Store.provision(a.KeyPrefix)
		return err
	case a.Redis == nil:
		return errors.New("nothing says where the stock is: write `stockgate { store /var/lib/stockgate }` in the global options, or `redis 127.0.0.1:6379` for several edges")
	}
	if a.options, err = a.Redis.options(a.KeyPrefix); err != nil {
		return err
	}
	if a.atRisk, err = a.Redis.bound(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// SharedMessages returns the sentences of refusals for all gates and guards; nil: those that are built in.
func (a *App) SharedMessages() *directive.Messages { return a.Messages }

// Start loads the signing key and connects to Redis in the background: Caddy starts whether
// or not Redis answers.
func (a *App) Start() error {
	keys, err := signing.Load(a.storage, a.Token.sources(), a.Token.Issuer, a.Token.Audience)
	if err != nil {
		return err
	}
	key, d, err := edgeruntime.Open(&edgeruntime.Options{Redis: a.options, Rates: a.rates, Embedded: a.isEmbedded(), Store: a.Store.server(), AtRisk: a.atRisk, Keys: keys.All(), Ledger: a.journals.KeepsLedger(), Log: a.log})
	if err != nil {
		return err
	}
	a.poolKey = key
	a.keys.Store(keys)
	if err := a.parts.checkSales(d); err != nil {
		return err
	}
	if err := a.lists.Start(key, d); err != nil {
		return err
	}
	if err := a.startUnlisted(key, d); err != nil {
		return err
	}
	a.runtime.Store(d) // the edge now knows which sales must exist
	if err := a.journals.Start(key, d); err != nil {
		return err
	}
	a.bypassKeeper = a.bypasses.start(a.log, d)
	a.parts.start(d)
	return a.noteIdentities(d)
}

// Stop hides the app from the admin API. What requests in flight need stays until Cleanup.
func (a *App) Stop() error {
	a.fast.stop()
	a.parts.stop()
	return nil
}

// Cleanup releases what Provision and Start have acquired, even if they failed halfway. The
// edge runtime comes last, after everything that uses it. It closes when no other
// configuration uses it and its last request has ended.
func (a *App) Cleanup() error {
	a.parts.stop()
	a.bypassKeeper.close()
	a.ruleTeller.close()
	a.lists.Close()
	a.unlisted.Close()
	var err error
	a.closeBypasses.Do(func() { err = a.bypasses.close() })
	if a.poolKey == "" {
		return err
	}
	key := a.poolKey
	a.poolKey = ""
	return errors.Join(err, a.journals.Close(), edgeruntime.Close(key))
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)

	_ directive.HasMessages = (*App)(nil)
)
