package ledger

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/journal"
)

const (
	// keepEvery is how often the journals are checked.
	keepEvery = 2 * time.Second
	// alarmAge and alarmLength are how far behind the ledger may be before an alarm is raised.
	alarmAge, alarmLength = 10 * time.Second, 100_000
)

// KeptJournals are the journals to trim: a journal.Journal.
type KeptJournals interface {
	Sales(ctx context.Context) ([]string, error)
	Heads
	Head(ctx context.Context, sale string) (journal.Head, error)
	Before(ctx context.Context, sale string, h journal.Head, before time.Time) (int64, error)
	Trim(ctx context.Context, sale string, h journal.Head, upTo int64, ledger bool, patience time.Duration) (int64, error)
}

// Cells are the cells of sales: a reservation.Store.
type Cells interface {
	EachCell(ctx context.Context, sale string, yield func(name, text string)) error
}

// TrimMetrics receives what a trimmer observes. Implementations must be safe for
// concurrent use.
type TrimMetrics interface {
	DriftMetrics
	// Journal reports where the journal of a sale begins and ends, and whether a ledger is
	// configured. lacks: why the ledger can never get what it lacks; nil: it can.
	Journal(sale string, h journal.Head, ledger bool, lacks error)
	// NoJournal reports that the sale is gone, or is no longer checked.
	NoJournal(sale string)
}

// Retention says how much of a journal is kept. Movements that a ledger does not have yet are always
// kept, and so are the newest journal.MinJournal. Movements that an outbox has not sent are
// kept unless the outbox has failed for as long as For.
type Retention struct {
	// For is how long movements are kept, Most how many.
	For  time.Duration
	Most int64
	// Ledger says that one follows these journals.
	Ledger bool
}

// Trimmer trims journals and reports their lengths. Any number of trimmers may run on the
// same journals.
type Trimmer struct {
	journals KeptJournals
	cells    Cells
	ledger   Positions // nil: what is acknowledged to Redis counts
	keep     Retention
	log      *zap.Logger
	metrics  TrimMetrics
	seen     map[string]bool  // the sales; true: the alarm is on
	fallen   map[string]int64 // what was reported as lost, by sale
	silent   bool             // the ledger has not answered in this look
	unsent   map[string]int64 // what the outbox had sent of a sale when its rest was trimmed
	drifts   map[string]*drift
}

// NewTrimmer makes a trimmer. l is the ledger of this edge; nil: it has none.
func NewTrimmer(j KeptJournals, cells Cells, l Positions, keep Retention, log *zap.Logger, m TrimMetrics) *Trimmer {
	return &Trimmer{
		journals: j, cells: cells, ledger: l, keep: keep, log: log, metrics: m, seen: make(map[string]bool), fallen: make(map[string]int64), unsent: make(map[string]int64), drifts: make(map[string]*drift),
	}
}

// Run trims the journals until ctx ends.
func (k *Trimmer) Run(ctx context.Context) {
	loop.Every(ctx, keepEvery, nil, func() { k.Look(ctx) })
	for sale := range k.seen {
		k.metrics.NoJournal(sale)
		k.metrics.NoDrift(sale, driftBalance)
	}
}

// Look checks all journals once. If Redis does not answer, the next call retries; the
// edge reports that Redis does not answer.
func (k *Trimmer) Look(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	ids, err := k.journals.Sales(call)
	if err != nil {
		return
	}
	here := make(map[string]bool, len(ids))
	k.silent = false
	for _, sale := range ids {
		here[sale] = true
		k.look(ctx, sale)
		k.watchBalance(ctx, sale)
	}
	for sale := range k.seen {
		if !here[sale] {
			delete(k.seen, sale)
			delete(k.unsent, sale)
			delete(k.fallen, sale)
			delete(k.drifts, sale)
			k.metrics.NoJournal(sale)
			k.metrics.NoDrift(sale, driftBalance)
		}
	}
}

func (k *Trimmer) look(ctx context.Context, sale string) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	h, err := k.journals.Head(ctx, sale)
	if err != nil {
		return
	}
	if h.Fenced {
		return // the fence says what it waits for, and what is lost is known afterwards
	}
	h, lacks, known := k.standing(ctx, sale, h)
	k.metrics.Journal(sale, h, k.keep.Ledger, lacks)
	k.seen[sale] = k.alarm(sale, h)
	if h.Lost > k.fallen[sale] {
		k.log.Error("redis went back: it has lost movements that this edge has seen, as in a failover without replica_acks or a crash without appendfsync always; "+
			"what they sold may be sold again: pause the sale, and compare it with the shop's orders", zap.String("sale", sale), zap.Int64("at_least", h.Lost))
	}
	if h.Lost == 0 && k.fallen[sale] > 0 {
		k.log.Info("redis has what it had lost: the edges have given it back", zap.String("sale", sale))
	}
	k.fallen[sale] = h.Lost
	if !known {
		return // it may have less than it had
	}
	upTo, err := k.upTo(ctx, sale, h)
	if err == nil && upTo >= h.First && h.First > 0 {
		var gone int64
		gone, err = k.journals.Trim(ctx, sale, h, upTo, k.keep.Ledger, k.keep.For)
		k.sayUnsent(sale, h, gone)
	}
	if err != nil && ctx.Err() == nil {
		k.log.Warn("the journal is not trimmed", zap.String("sale", sale), zap.Error(err))
	}
}

// standing returns the head as it is for this edge's ledger, and why that lacks movements for good;
// known: the ledger has answered, or there is none.
func (k *Trimmer) standing(ctx context.Context, sale string, h journal.Head) (_ journal.Head, lacks error, known bool) {
	if k.ledger == nil {
		return h, nil, true
	}
	if k.silent {
		return h, nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, keepEvery)
	defer cancel()
	own, err := Standing(ctx, k.journals, k.ledger, sale, h)
	if _, gap := errors.AsType[*PositionError](err); gap {
		return own, err, true
	}
	k.silent = errors.Is(err, ErrLedger)
	return own, nil, err == nil
}

// upTo is the last movement that need not be kept.
func (k *Trimmer) upTo(ctx context.Context, sale string, h journal.Head) (int64, error) {
	upTo := h.Last - k.keep.Most
	if since := h.Now.Add(-k.keep.For); h.First > 0 && h.Began.Before(since) {
		old, err := k.journals.Before(ctx, sale, h, since)
		if err != nil {
			return 0, err
		}
		upTo = max(upTo, old)
	}
	upTo = min(upTo, h.Last-journal.MinJournal)
	if k.keep.Ledger {
		upTo = min(upTo, h.Acked)
	}
	return upTo, nil
}

// sayUnsent logs, once for each position of the outbox, that unsent movements are gone:
// the outbox has failed for as long as movements are kept.
func (k *Trimmer) sayUnsent(sale string, h journal.Head, gone int64) {
	if told, ok := k.unsent[sale]; h.SentAt.IsZero() || gone <= h.Sent || ok && told == h.Sent {
		return
	}
	if h.Now.Sub(h.SentAt) < k.keep.For { // the outbox has sent more since the last look
		return
	}
	k.unsent[sale] = h.Sent
	k.log.Error("the journal does not wait for the outbox any more: it has sent nothing for longer than movements are kept, and what is trimmed now its receiver gets from the ledger, or never",
		zap.String("sale", sale), zap.Int64("sent", h.Sent), zap.Int64("trimmed", gone), zap.Time("well_at", h.SentAt))
}

// Late reports whether a ledger is so far behind that operators should know.
func Late(h journal.Head) bool { return h.Age > alarmAge || h.Behind() > alarmLength }

// alarm logs when the ledger falls behind, and when it has caught up.
func (k *Trimmer) alarm(sale string, h journal.Head) bool {
	behind := k.keep.Ledger && Late(h)
	switch {
	case behind && !k.seen[sale]:
		k.log.Error("the ledger is behind: the journal grows in redis until it catches up", zap.String("sale", sale),
			zap.Int64("movements", h.Behind()), zap.Duration("oldest", h.Age))
	case !behind && k.seen[sale]:
		k.log.Info("the ledger has caught up", zap.String("sale", sale))
	}
	return behind
}
