// Package journals is what an edge does with the journals of its sales: it trims them, and copies them to the ledger,
// the outbox's receiver and the mirror.
package journals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/outbox"
)

// Settings is what a configuration says of the journals.
type Settings struct {
	Journal Journal
	// Ledger is its loaded module; nil: there is none.
	Ledger any
	// Outbox is the receiver of all movements; nil: there is none.
	Outbox *Outbox
	// Mirror configures the module stockgate.mirror; nil: there is none.
	Mirror json.RawMessage
}

// Service is what one configuration needs to trim the journals and to copy them to
// its ledger and to the outbox's receiver.
type Service struct {
	keep    ledger.Retention
	module  LedgerModule           // nil: none
	outbox  *outbox.Options        // nil: none
	mirror  MirrorModule           // nil: none
	poolKey string                 // of the pooled worker
	worker  atomic.Pointer[worker] // nil before start
}

// Provision checks a configuration.
func (b *Service) Provision(ctx caddy.Context, c *Settings) error {
	if c.Ledger != nil {
		module, ok := c.Ledger.(LedgerModule)
		if !ok {
			return fmt.Errorf("ledger: %T is no ledger", c.Ledger)
		}
		b.module = module
	}
	if c.Outbox != nil {
		options, err := c.Outbox.options()
		if err != nil {
			return fmt.Errorf("outbox: %w", err)
		}
		if b.outbox = &options; isOpen(options.URL) {
			ctx.Logger().Warn("the outbox sends movements over plain http, which anyone on the network path can read: use https")
		}
	}
	var err error
	if b.mirror, err = loadMirror(ctx, c.Mirror); err != nil {
		return err
	}
	b.keep, err = c.Journal.keep(b.module != nil)
	return err
}

// workers are shared by the configurations that exist at the same time: a reload
// that changes neither Redis nor ledger nor outbox does not interrupt them.
var workers = caddy.NewUsagePool()

// Start begins to trim and copy the journals of an edge runtime.
func (b *Service) Start(runtimeKey string, d *edgeruntime.Runtime) error {
	identity := ""
	if b.module != nil {
		identity = string(b.module.CaddyModule().ID) + " " + b.module.Identity()
	}
	sink := ""
	if b.outbox != nil {
		sink = fmt.Sprintf("%+v", *b.outbox)
	}
	if b.mirror != nil {
		sink += " " + b.mirror.Identity()
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s %q %+v %q", runtimeKey, identity, b.keep, sink))
	key := hex.EncodeToString(hash[:])
	k, _, err := workers.LoadOrNew(key, func() (caddy.Destructor, error) { return startWorker(b, d) })
	if err != nil {
		return err
	}
	b.poolKey = key
	b.worker.Store(k.(*worker))
	return nil
}

// Ledger returns the open ledger; nil: there is none.
func (b *Service) Ledger() ledger.Ledger {
	if k := b.worker.Load(); k != nil {
		return k.ledger
	}
	return nil
}

// History reads movements from the journals of an edge runtime, and older ones from the ledger.
func (b *Service) History(d *edgeruntime.Runtime) ledger.History {
	return ledger.History{Journals: d.Store.Journal(), Ledger: b.Ledger()}
}

// KeepsLedger reports whether the configuration has a ledger.
func (b *Service) KeepsLedger() bool { return b.module != nil }

// Mirrors reports whether one of these sales may be mirrored. None, or one with a placeholder, is
// any sale.
func (b *Service) Mirrors(sales ...string) bool { return b.mirror != nil && b.mirror.Mirrors(sales...) }

// Close releases everything, once.
func (b *Service) Close() error {
	if b.poolKey == "" {
		return nil
	}
	key := b.poolKey
	b.poolKey = ""
	b.worker.Store(nil)
	_, err := workers.Delete(key)
	return err
}

// worker runs the loops that trim and copy the journals of an edge runtime. It is in
// the pool.
type worker struct {
	ledger ledger.Ledger // nil: none
	unask  func()        // fences do not ask the ledger any more
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

func startWorker(b *Service, d *edgeruntime.Runtime) (*worker, error) {
	k := &worker{unask: func() {}}
	if b.module != nil {
		var err error
		if k.ledger, err = b.module.OpenLedger(); err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
	}
	// like the edge runtime, it outlives the configuration that started it
	log := caddy.Log().Named("stockgate")
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	trimmer := ledger.NewTrimmer(d.Store.Journal(), d.Store, k.ledger, b.keep, log, meter.JournalService{})
	k.loops.Go(func() { trimmer.Run(ctx) })
	if k.ledger != nil {
		drainer := ledger.NewDrainer(d.Store.Journal(), d.Store, k.ledger, log, meter.JournalService{})
		k.loops.Go(func() { drainer.Run(ctx) })
		k.unask = d.Leases().UseLedger(func(ctx context.Context, sale string) (epoch, number int64, err error) {
			at, err := k.ledger.Position(ctx, sale)
			return at.Epoch, at.Seq, err
		})
	}
	if b.mirror != nil {
		run, err := b.mirror.Open(d, log)
		if err != nil {
			cancel()
			k.loops.Wait()
			return nil, fmt.Errorf("mirror: %w", err)
		}
		k.loops.Go(func() { run(ctx) })
	}
	if b.outbox != nil {
		sender := outbox.New(d.Store.Journal(), k.ledger, *b.outbox, log, meter.JournalService{})
		k.loops.Go(func() { sender.Run(ctx) })
	}
	return k, nil
}

// Destruct stops the loops. The database rolls back unfinished work, or the outbox sends it
// again: the process that next acquires the lease of the sale does it.
func (k *worker) Destruct() error {
	k.unask()
	k.cancel()
	k.loops.Wait()
	if k.ledger == nil {
		return nil
	}
	if err := k.ledger.Close(); err != nil && !errors.Is(err, context.Canceled) {
		caddy.Log().Named("stockgate").Warn("closing the ledger", zap.Error(err))
	}
	return nil
}
