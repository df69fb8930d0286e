package edge

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const (
	// backlogOfSale bounds the outcomes of one sale that wait for Redis to come back, and
	// backlogSize those of all sales: about 200 bytes each. What does not fit becomes in
	// doubt at its deadline, or expires. Internal outcomes may take half of it, so that they
	// never keep out what the shop has said.
	backlogOfSale, backlogSize = 20_000, 100_000
	// maxOutcomesPerCall bounds the outcomes of one sale that one call of a script has.
	maxOutcomesPerCall = combine.MaxTogether
	// backlogPause is the pause after a call without an answer; it doubles up to
	// backlogLongest.
	backlogPause, backlogLongest = 20 * time.Millisecond, time.Second
)

// outcomeReply is Redis's answer to an outcome.
type outcomeReply struct {
	state record.State
	err   error
}

// backlog sends Redis the outcomes that did not reach it at once, and retries in the
// background until Redis has them. Each sale has a queue of its own, so that one whose
// shard does not answer delays no other.
type backlog struct {
	log     *zap.Logger
	send    func(ctx context.Context, ofOneSale []outcome) []outcomeReply
	dropped func()

	mu      sync.Mutex
	ctx     context.Context // until when it sends; nil: it has not begun
	sales   map[string]*saleBacklog
	count   int           // in all of them
	changed chan struct{} // closed and renewed whenever it gets less
	running sync.WaitGroup
}

// saleBacklog is what waits for one sale's shard. It exists while anything waits, with a
// goroutine of its own once the backlog runs.
type saleBacklog struct {
	sale    string
	waiting []outcome // those that are being sent come first
	known   map[outcomeKey]struct{}
}

// outcomeKey finds repeats: the same outcome of one reservation is queued once.
type outcomeKey struct {
	id   string
	kind outcomeKind
}

func newBacklog(log *zap.Logger, tell func(context.Context, []outcome) []outcomeReply, dropped func()) *backlog {
	return &backlog{log: log, send: tell, dropped: dropped, sales: map[string]*saleBacklog{}, changed: make(chan struct{})}
}

// add queues an outcome; a full backlog says so in the log and drops it.
func (b *backlog) add(o outcome) {
	if b.fits(o) {
		return
	}
	b.dropped()
	b.log.Error("backlog is full: a reservation will end by its deadline; look for it with `caddy stockgate holds`",
		zap.String("sale", o.sale), zap.String("reservation", o.id), zap.Stringer("outcome", o.kind), zap.String("cause", o.cause))
}

// fits queues an outcome if there is room.
func (b *backlog) fits(o outcome) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, key := b.sales[o.sale], outcomeKey{o.id, o.kind}
	if q != nil {
		if _, ok := q.known[key]; ok {
			return true
		}
	}
	if b.full(q, o.promised()) {
		return false
	}
	if q == nil {
		q = &saleBacklog{sale: o.sale, known: map[outcomeKey]struct{}{}}
		b.sales[o.sale] = q
		b.begin(q)
	}
	q.known[key] = struct{}{}
	q.waiting = append(q.waiting, o)
	b.count++
	return true
}

// has reports whether an outcome waits.
func (b *backlog) has(sale string, key outcomeKey) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.sales[sale]
	if q == nil {
		return false
	}
	_, ok := q.known[key]
	return ok
}

// full reports whether a sale's queue has reached its bound. When all queues together
// have reached theirs, each sale still keeps its share, so that none excludes another.
func (b *backlog) full(q *saleBacklog, promised bool) bool {
	most, all, share, has := backlogOfSale, backlogSize, backlogSize/max(1, len(b.sales)), 0
	if !promised {
		most, all, share = most/2, all/2, share/2
	}
	if q != nil {
		has = len(q.waiting)
	}
	return has >= most || b.count >= all && has >= share
}

// begin starts to send a sale's outcomes if the backlog runs. mu must be held.
func (b *backlog) begin(q *saleBacklog) {
	if ctx := b.ctx; ctx != nil && ctx.Err() == nil {
		b.running.Go(func() { b.sendAll(ctx, q) })
	}
}

// run sends outcomes until ctx ends.
func (b *backlog) run(ctx context.Context) {
	b.mu.Lock()
	b.ctx = ctx
	for _, q := range b.sales {
		b.begin(q)
	}
	b.mu.Unlock()
	<-ctx.Done()
	b.mu.Lock()
	b.ctx = nil // nothing begins from here on
	b.mu.Unlock()
	b.running.Wait()
}

// sendAll sends a sale's outcomes until none is left. Those that get no answer go to the
// end of the queue. The pause before the next call grows while none gets one.
func (b *backlog) sendAll(ctx context.Context, q *saleBacklog) {
	pause := backlogPause
	for {
		some := b.next(q)
		if some == nil || ctx.Err() != nil {
			return
		}
		again := b.done(q, some, b.send(ctx, some))
		if again < len(some) {
			pause = backlogPause
		}
		if again == 0 {
			continue
		}
		// jitter: edges and sales must not all ask at the same moment
		if !loop.Rest(ctx, pause/2+rand.N(pause), nil) {
			return
		}
		pause = min(2*pause, backlogLongest)
	}
}

// next returns the outcomes of the next call; nil: none is left, and the queue has ended.
func (b *backlog) next(q *saleBacklog) []outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(q.waiting) == 0 {
		delete(b.sales, q.sale)
		return nil
	}
	n := min(len(q.waiting), maxOutcomesPerCall)
	return q.waiting[:n:n]
}

// done removes the outcomes that were answered, and returns how many must be sent again.
func (b *backlog) done(q *saleBacklog, some []outcome, answers []outcomeReply) int {
	var again []outcome
	for i, a := range answers {
		if untold(a.err) {
			again = append(again, some[i])
		} else {
			b.logged(&some[i], a)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, a := range answers {
		if !untold(a.err) {
			delete(q.known, outcomeKey{some[i].id, some[i].kind})
		}
	}
	q.waiting = append(q.waiting[len(some):], again...)
	if b.count -= len(some) - len(again); len(again) < len(some) {
		close(b.changed)
		b.changed = make(chan struct{})
	}
	return len(again)
}

// size is the number of outcomes that Redis does not know yet.
func (b *backlog) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// drain waits until the backlog is empty, or ctx ends; it returns what is left.
func (b *backlog) drain(ctx context.Context) int {
	for {
		b.mu.Lock()
		left, changed := b.count, b.changed
		b.mu.Unlock()
		if left == 0 {
			return 0
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return left
		}
	}
}

func (b *backlog) logged(o *outcome, a outcomeReply) {
	fields := []zap.Field{zap.String("sale", o.sale), zap.String("reservation", o.id), zap.Stringer("outcome", o.kind),
		zap.String("cause", o.cause), zap.String("state", string(a.state))}
	if a.err != nil && (o.kind == outcomeConfirm || !errors.Is(a.err, reservation.ErrNotFound)) { // of a confirm there is an order
		b.log.Error("a late outcome was not accepted", append(fields, zap.Error(a.err))...)
		return
	}
	b.log.Debug("a late outcome was told", fields...)
}
