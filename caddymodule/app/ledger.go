package app

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/outbox"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// LedgerModule is a module in the namespace stockgate.ledgers: a database that can keep the
// ledger.
type LedgerModule interface {
	caddy.Module
	// OpenLedger opens the ledger as configured. It does not wait for the database.
	OpenLedger() (ledger.Ledger, error)
	// Identity is equal for two modules that open the same ledger in the same way.
	Identity() string
	// Schema returns the statements that create the ledger's tables, in the language of the
	// database.
	Schema() []string
}

// ErrReplica says that a shop's database is not the primary, as far as its settings tell.
var ErrReplica = errors.New("the shop's database is read-only: a replica may lag behind, and show units that are sold and lack orders. " +
	"Give the address of the primary; if this is the primary, switch its read_only off")

// StockDatabase is an optional interface of modules in stockgate.ledgers: a kind of
// database that a shop may have, and that commands ask.
type StockDatabase interface {
	// OpensStock reports whether an address belongs to a database of this kind.
	OpensStock(dsn string) bool
	// OpenStock opens the database for reading. It need not connect. A query ends in the database too
	// once it has taken longer than within. An error does not repeat the address, which may contain a
	// password; a connection fails with ErrReplica where the database tells that it is a replica.
	OpenStock(dsn string, within time.Duration) (*sql.DB, error)
}

// Journal bounds how much of each sale's journal stays in Redis. The newest 10,000
// movements always stay and, with a ledger, all that the ledger does not have yet.
type Journal struct {
	// Keep is how long movements stay, at least 1m. Default: 168h.
	Keep caddy.Duration `json:"keep,omitempty"`
	// Most is how many movements of a sale stay, at least 10,000. Default: 5,000,000; with a ledger 100,000.
	Most int64 `json:"most,omitempty"`
}

const (
	defaultJournalKeep       = 7 * 24 * time.Hour
	defaultJournalMost       = 5_000_000
	defaultJournalMostLedger = 100_000
)

// keep returns the configured bounds, with their defaults.
func (j Journal) keep(withLedger bool) (ledger.Retention, error) {
	switch {
	case j.Keep < 0 || j.Keep > 0 && time.Duration(j.Keep) < time.Minute:
		return ledger.Retention{}, fmt.Errorf("journal: keep is %v: at least 1m, or leave it out", time.Duration(j.Keep))
	case j.Most < 0 || j.Most > 0 && j.Most < journal.MinJournal:
		return ledger.Retention{}, fmt.Errorf("journal: most is %d: at least %d, or leave it out", j.Most, journal.MinJournal)
	}
	k := ledger.Retention{For: time.Duration(j.Keep), Most: j.Most, Ledger: withLedger}
	if k.For == 0 {
		k.For = defaultJournalKeep
	}
	switch {
	case k.Most > 0:
	case withLedger:
		k.Most = defaultJournalMostLedger
	default:
		k.Most = defaultJournalMost
	}
	return k, nil
}

// journalService is what one configuration needs to trim the journals and to copy them to
// its ledger and to the outbox's receiver.
type journalService struct {
	keep    ledger.Retention
	module  LedgerModule                  // nil: none
	outbox  *outbox.Options               // nil: none
	mirror  MirrorModule                  // nil: none
	poolKey string                        // of the pooled worker
	worker  atomic.Pointer[journalWorker] // nil before start
}

// provision loads the ledger's module and checks the configuration.
func (b *journalService) provision(a *App, ctx caddy.Context) error {
	if len(a.LedgerRaw) > 0 {
		loaded, err := ctx.LoadModule(a, "LedgerRaw")
		if err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
		module, ok := loaded.(LedgerModule)
		if !ok {
			return fmt.Errorf("ledger: %T is no ledger", loaded)
		}
		b.module = module
	}
	if a.Outbox != nil {
		options, err := a.Outbox.options()
		if err != nil {
			return fmt.Errorf("outbox: %w", err)
		}
		if b.outbox = &options; isOpen(options.URL) {
			a.log.Warn("the outbox sends movements over plain http, which anyone on the network path can read: use https")
		}
	}
	var err error
	if b.mirror, err = loadMirror(ctx, a.MirrorRaw); err != nil {
		return err
	}
	b.keep, err = a.Journal.keep(b.module != nil)
	return err
}

// journalWorkers are shared by the configurations that exist at the same time: a reload
// that changes neither Redis nor ledger nor outbox does not interrupt them.
var journalWorkers = caddy.NewUsagePool()

// start begins to trim and copy the journals of an edge runtime.
func (b *journalService) start(runtimeKey string, d *edgeruntime.Runtime) error {
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
	k, _, err := journalWorkers.LoadOrNew(key, func() (caddy.Destructor, error) { return startJournalWorker(b, d) })
	if err != nil {
		return err
	}
	b.poolKey = key
	b.worker.Store(k.(*journalWorker))
	return nil
}

// ledger returns the open ledger; nil: there is none.
func (b *journalService) ledger() ledger.Ledger {
	if k := b.worker.Load(); k != nil {
		return k.ledger
	}
	return nil
}

// close releases everything, once.
func (b *journalService) close() error {
	if b.poolKey == "" {
		return nil
	}
	key := b.poolKey
	b.poolKey = ""
	b.worker.Store(nil)
	_, err := journalWorkers.Delete(key)
	return err
}

// journalWorker runs the loops that trim and copy the journals of an edge runtime. It is in
// the pool.
type journalWorker struct {
	ledger ledger.Ledger // nil: none
	unask  func()        // fences do not ask the ledger any more
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

func startJournalWorker(b *journalService, d *edgeruntime.Runtime) (*journalWorker, error) {
	k := &journalWorker{unask: func() {}}
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
func (k *journalWorker) Destruct() error {
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
