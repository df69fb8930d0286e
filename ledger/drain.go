package ledger

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/reservation"
)

const (
	// lease is how long a drainer that has died keeps the others waiting.
	lease = 5 * time.Second
	// batchMost bounds one transaction. A database that is too slow for so many gets
	// fewer, at least batchLeast.
	batchMost, batchLeast = 2000, 50
	// lookEvery is how often a drainer looks for sales.
	lookEvery = time.Second
	// idleLeast and idleMost are the pauses of a sale that is drained: they grow while
	// nothing happens.
	idleLeast, idleMost = 200 * time.Millisecond, time.Second
	// failedLeast and failedMost are the pauses after a failure.
	failedLeast, failedMost = 200 * time.Millisecond, 5 * time.Second
	// callFor bounds one call of Redis or of the database, appendFor one transaction.
	callFor, appendFor = 10 * time.Second, 30 * time.Second
	// giveupFor is what the end of a drainer takes at most.
	giveupFor = 2 * time.Second
	// repeatLog is how soon another error of the same sale is logged.
	repeatLog = time.Minute
)

// Journals is where movements come from: a reservation.Store.
type Journals interface {
	Sales(ctx context.Context) ([]string, error)
	Journal(ctx context.Context, sale string, after int64, most int) ([]reservation.Movement, error)
	JournalHead(ctx context.Context, sale string) (reservation.JournalHead, error)
	SaleDocument(ctx context.Context, sale string) (version int64, status, file string, err error)
	Acknowledge(ctx context.Context, sale string, epoch, seq int64) error
	Cells(ctx context.Context, sale string) (map[string]string, error)
	Examine(ctx context.Context, sale string, names []reservation.Named) (*reservation.Examined, error)
}

// DrainMetrics receives what a drainer counts. Implementations must be safe for
// concurrent use.
type DrainMetrics interface {
	DriftMetrics
	// Drained: so many movements have come into the ledger.
	Drained(sale string, movements int)
	// DrainFailed: a sale could not be drained. Where is journal or ledger.
	DrainFailed(where string)
}

// Drainer copies journals into a ledger. Any number of drainers, in any number of
// processes, may work on the same journals and the same ledger: one has a sale at a
// time, and another goes on when it dies.
type Drainer struct {
	journals Journals
	ledger   Ledger
	owner    string
	log      *zap.Logger
	metrics  DrainMetrics

	migrating sync.Mutex
	migrated  bool
}

// NewDrainer makes a drainer.
func NewDrainer(from Journals, to Ledger, log *zap.Logger, m DrainMetrics) *Drainer {
	host, _ := os.Hostname() // for whoever reads the table; what makes it the only one is random
	owner := Text(fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()))
	return &Drainer{journals: from, ledger: to, owner: owner, log: log, metrics: m}
}

// Run drains all sales until ctx ends, each on its own: one that cannot be drained
// holds up no other. It gives its claims up at the end.
func (d *Drainer) Run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	following := make(map[string]context.CancelFunc)
	looking := time.NewTicker(lookEvery)
	defer looking.Stop()
	for {
		call, cancel := context.WithTimeout(ctx, callFor)
		ids, err := d.journals.Sales(call)
		cancel()
		if err == nil {
			here := make(map[string]bool, len(ids))
			for _, sale := range ids {
				here[sale] = true
				if following[sale] == nil {
					one, end := context.WithCancel(ctx)
					following[sale] = end
					loops.Go(func() { d.follow(one, sale) })
				}
			}
			for sale, end := range following {
				if !here[sale] {
					end()
					delete(following, sale)
				}
			}
		} else if ctx.Err() == nil {
			d.metrics.DrainFailed("journal")
		}
		select {
		case <-looking.C:
		case <-ctx.Done():
			for _, end := range following {
				end()
			}
			return
		}
	}
}

// follow drains one sale until ctx ends.
func (d *Drainer) follow(ctx context.Context, sale string) {
	s := &following{Drainer: d, sale: sale, most: batchMost, drift: drift{sale: sale, what: driftLedger}}
	defer s.giveUp(ctx)
	idle, failed := idleLeast, failedLeast
	for ctx.Err() == nil {
		moved, err := s.turn(ctx)
		if ctx.Err() != nil {
			return
		}
		s.noteTrouble(err)
		pause := time.Duration(0)
		switch {
		case err != nil:
			pause, failed = failed, min(2*failed, failedMost)
		case moved > 0:
			idle, failed = idleLeast, failedLeast
			if moved < s.most {
				pause = idleLeast / 4 // let a batch come together
			}
		default:
			pause, idle, failed = idle, min(2*idle, idleMost), failedLeast
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
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
