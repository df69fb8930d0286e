package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// lease is how long the other drainers wait for one that has died.
	lease = 5 * time.Second
	// batchMost bounds one transaction. A slow database gets smaller batches, of at
	// least batchLeast.
	batchMost, batchLeast = 2000, 50
	// idleLeast and idleMost bound the pauses of a drained sale: they grow while nothing happens.
	idleLeast, idleMost = 200 * time.Millisecond, time.Second
	// lookAgain is how often a drainer checks that an up-to-date ledger still has everything.
	lookAgain = 10 * time.Second
	// failedLeast and failedMost are the pauses after a failure.
	failedLeast, failedMost = 200 * time.Millisecond, 5 * time.Second
	// callFor bounds one call of Redis or of the database, appendFor one transaction.
	callFor, appendFor = 10 * time.Second, 30 * time.Second
	// giveupFor bounds how long a drainer takes to stop.
	giveupFor = 2 * time.Second
)

// Journals is where movements come from: a journal.Journal.
type Journals interface {
	Sales
	Movements(ctx context.Context, sale string, after int64, most int) ([]journal.Movement, error)
	Head(ctx context.Context, sale string) (journal.Head, error)
	SaleDocument(ctx context.Context, sale string) (version int64, status, file string, err error)
	Acknowledge(ctx context.Context, sale string, epoch, seq int64) error
	Announce(ctx context.Context, sales ...string) error
	DeletedEpoch(ctx context.Context, sale string) (int64, error)
	MarkLedger(ctx context.Context, sale string, m journal.Mark) error
	NoteDrainer(ctx context.Context, sale, owner string, asked time.Time) error
	ForgetDrainer(ctx context.Context, sale, owner string) error
}

// Stock reads the stock of the sales in Redis: a reservation.Store.
type Stock interface {
	EachCell(ctx context.Context, sale string, yield func(name, text string)) error
	Examine(ctx context.Context, sale string, names []reservation.Named) (*reservation.Examined, error)
	Life(ctx context.Context, sale string) (reservation.Life, error)
}

// DrainMetrics receives what a drainer counts. Implementations must be safe for
// concurrent use.
type DrainMetrics interface {
	DriftMetrics
	// Drained reports that this many movements were added to the ledger.
	Drained(sale string, movements int)
	// DrainFailed reports that a sale could not be drained. where is journal or ledger.
	DrainFailed(where string)
}

// Drainer copies journals into a ledger. Any number of drainers, in any number of processes,
// may work on the same journals and the same ledger. One drainer has a sale at a time; another
// takes over when it dies.
type Drainer struct {
	journals Journals
	stock    Stock
	ledger   Ledger
	owner    string
	log      *zap.Logger
	metrics  DrainMetrics

	migrating sync.Mutex
	migrated  bool
}

// NewDrainer makes a drainer.
func NewDrainer(from Journals, stock Stock, to Ledger, log *zap.Logger, m DrainMetrics) *Drainer {
	return &Drainer{journals: from, stock: stock, ledger: to, owner: Owner(), log: log, metrics: m}
}

// Owner makes a name under which one worker of this process acquires leases.
func Owner() string {
	host, _ := os.Hostname() // for operators; the random part makes it unique
	return Text(fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()))
}

// Run drains all sales until ctx ends, each in its own goroutine, so that a sale that cannot be
// drained delays no other. It gives up its leases at the end.
func (d *Drainer) Run(ctx context.Context) {
	var reminding sync.WaitGroup
	defer reminding.Wait()
	reminding.Go(func() { d.remind(ctx) })
	EachSale(ctx, d.journals, func() { d.metrics.DrainFailed("journal") }, d.follow)
}

// follow drains one sale until ctx ends.
func (d *Drainer) follow(ctx context.Context, sale string) {
	s := &following{Drainer: d, sale: sale, most: batchMost, drift: drift{sale: sale, what: driftLedger}}
	defer s.giveUp(ctx)
	idle, failed := idleLeast, failedLeast
	for ctx.Err() == nil {
		moved, err := s.poll(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, shard.ErrNoSale) {
			err = nil // it is being rebuilt, or fenced: neither a success nor an error
		} else {
			s.noteTrouble(err)
		}
		pause := time.Duration(0)
		switch {
		case err != nil:
			pause, failed = failed, min(2*failed, failedMost)
		case moved > 0:
			idle, failed = idleLeast, failedLeast
			if moved < s.most {
				pause = idleLeast / 4 // let a batch fill up
			}
		default:
			pause, idle, failed = idle, min(2*idle, idleMost), failedLeast
		}
		loop.Rest(ctx, pause, nil)
	}
}

// migrate brings the ledger's tables up to date, once.
func (d *Drainer) migrate(ctx context.Context) error {
	d.migrating.Lock()
	defer d.migrating.Unlock()
	if d.migrated {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, appendFor)
	defer cancel()
	if err := d.ledger.Migrate(ctx); err != nil {
		return err
	}
	d.migrated = true
	return nil
}
