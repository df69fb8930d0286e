package outbox

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/post"
	"github.com/stockgate/stockgate/internal/store/journal"
)

const (
	// lease is how long the other edges wait for one that has died.
	lease = 5 * time.Second
	// wellEvery is how often Redis is told that the receiver is up to date with an idle sale.
	wellEvery = time.Minute
	// lagEvery is how often the receiver's lag is measured.
	lagEvery = time.Second
	// behindAge and behindLength are how far behind it may be before an alarm is raised.
	behindAge, behindLength = 10 * time.Second, 100_000
	// idleLeast and idleMost bound the pauses of an idle sale, failedLeast and
	// failedMost those after a failure of Redis.
	idleLeast, idleMost     = 200 * time.Millisecond, time.Second
	failedLeast, failedMost = 200 * time.Millisecond, 5 * time.Second
	// callFor bounds one call of Redis, noteFor one that is made even when the outbox ends.
	callFor, noteFor = 10 * time.Second, 2 * time.Second
)

// The defaults of Options.
const (
	DefaultBatch   = 100
	DefaultTimeout = 15 * time.Second
)

// MaxBatch is the largest number of movements in one request.
const MaxBatch = maxScan

// Options say what an outbox sends, and where.
type Options struct {
	// URL is where batches are posted to.
	URL string
	// Secrets sign the messages. Each of them makes a signature, so that a receiver may
	// know the old or the new one.
	Secrets []Secret
	// Batch is how many movements one request has at most. Default: DefaultBatch.
	Batch int
	// Timeout is how long the receiver may take to answer. Default: DefaultTimeout.
	Timeout time.Duration
	// Sales and Kinds are the sales and kinds of movements to send; empty: all.
	Sales, Kinds []string
	// Again are the pauses between retries.
	Again Pauses
}

// Pauses double from the first value to the last: Soon where the receiver may recover, Late
// where it refuses the message. Each is cut by up to half at random. Defaults: 500 ms to 30
// s, and 5 s to 2 min.
type Pauses struct{ Soon, SoonMost, Late, LateMost time.Duration }

// Journals is where movements come from: a reservation.Store.
type Journals interface {
	ledger.Sales
	Movements(ctx context.Context, sale string, after int64, most int) ([]journal.Movement, error)
	Head(ctx context.Context, sale string) (journal.Head, error)
	AcquireLease(ctx context.Context, sale, owner string, forHow time.Duration, epoch, last int64) (journal.SendLease, bool, error)
	GiveUpLease(ctx context.Context, sale, owner string) error
	Sent(ctx context.Context, sale string, epoch, seq int64) error
	DeletedEpoch(ctx context.Context, sale string) (int64, error)
}

// Metrics receives what an outbox counts. Implementations must be safe for concurrent
// use.
type Metrics interface {
	// OutboxLag: the receiver lacks this many movements of a sale, the oldest for this long.
	OutboxLag(sale string, movements int64, oldest time.Duration)
	// NoOutbox: the sale is gone, or is no longer sent.
	NoOutbox(sale string)
	// OutboxSent: the receiver has accepted this many movements.
	OutboxSent(sale string, movements int)
	// OutboxPosted: the receiver has answered with 2xx, 3xx, 4xx or 5xx, or has not
	// answered (none).
	OutboxPosted(answer string)
	// OutboxFailed: where is journal (Redis, or the ledger behind it) or receiver.
	OutboxFailed(where string)
	// OutboxTrouble: this keeps the outbox from getting on with a sale; nil: nothing does any more.
	OutboxTrouble(sale string, err error)
}

// Outbox sends movements. Any number of them, in any number of processes, may send the
// same journals to the same receiver: one has a sale at a time, and another takes over
// when it dies.
type Outbox struct {
	journals Journals
	history  ledger.History
	options  Options
	owner    string
	client   *http.Client
	log      *zap.Logger
	metrics  Metrics
}

// New makes an outbox. Trimmed movements are read from the ledger; nil: there is none.
func New(from Journals, old ledger.Ledger, o Options, log *zap.Logger, m Metrics) *Outbox {
	o.Batch = min(cmp.Or(o.Batch, DefaultBatch), MaxBatch)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Again.Soon, o.Again.SoonMost = cmp.Or(o.Again.Soon, 500*time.Millisecond), cmp.Or(o.Again.SoonMost, 30*time.Second)
	o.Again.Late, o.Again.LateMost = cmp.Or(o.Again.Late, 5*time.Second), cmp.Or(o.Again.LateMost, 2*time.Minute)
	return &Outbox{
		journals: from, history: ledger.History{Journals: from, Ledger: old}, options: o,
		owner: ledger.Owner(), client: post.NewClient(), log: log, metrics: m,
	}
}

// Run sends the movements of all sales until ctx ends, each in its own goroutine: a
// sale that the receiver does not accept holds up no other. It gives up its leases at
// the end.
func (o *Outbox) Run(ctx context.Context) {
	defer o.client.CloseIdleConnections()
	ledger.EachSale(ctx, o.journals, func() { o.metrics.OutboxFailed("journal") }, func(ctx context.Context, sale string) {
		if len(o.options.Sales) == 0 || slices.Contains(o.options.Sales, sale) {
			(&sending{Outbox: o, sale: sale}).run(ctx)
		}
	})
}
