package combine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// MaxTogether and MaxWeight bound what one call of a script does: Redis does nothing else
	// meanwhile.
	MaxTogether, MaxWeight = 128, 4096
	// MaxWaiting bounds the attempts that wait for Redis on one edge. Each has a request open, which
	// takes far more memory than its place here.
	MaxWaiting = 50_000
	// MaxSettling bounds the operations that wait to settle earlier ones.
	MaxSettling = 10_000
	// linger is how long a call waits for as many tickets as the last one had.
	linger = time.Millisecond
)

// ErrBusy says that more operations wait for Redis than it can do in time.
var ErrBusy = fmt.Errorf("%w: too many wait for it (%w)", shard.ErrUnavailable, shard.ErrNotSent)

var (
	ErrClosed = fmt.Errorf("%w: this edge has stopped (%w)", shard.ErrUnavailable, shard.ErrNotSent)
	ErrNoTime = fmt.Errorf("%w: its time was up while it waited for others (%w)", shard.ErrUnavailable, shard.ErrNotSent)
	// errLeft says that the operation may have run, or may still run.
	errLeft = fmt.Errorf("%w: %w", shard.ErrUnavailable, errors.New("its time was up before the answer came"))
)

// Combiner does what many goroutines ask for at the same time in few calls. Each queue has at
// most one batch under way. What queues meanwhile goes in the next batch, in the order in which
// it came. A single request does not wait for others.
type Combiner[Q, A any] struct {
	// send does what a batch asks for and answers every ticket of it.
	send func(queue string, batch []*Ticket[Q, A])

	mu      sync.Mutex
	queues  map[string]*queue[Q, A] // the queues that have a goroutine
	waiting [2]int                  // in all queues: of reserve requests, and of what settles
	outside int                     // callers of AwaitRoom that wait
	sending Load                    // batches under way
	closed  bool
	running sync.WaitGroup
	// answers are empty channels into which no goroutine will write.
	answers sync.Pool
}

// Ticket is one request of one caller.
type Ticket[Q, A any] struct {
	Request Q
	Weight  int  // roughly how much work it is
	Settles bool // it settles a reservation: new attempts do not displace it

	Ctx      context.Context      // the caller waits until it ends
	Done     chan SourceAnswer[A] // has room for the one answer, even if the caller no longer waits
	answered bool                 // belongs to the goroutine that answers

	queue      *queue[Q, A] // nil: it no longer waits; guarded by the combiner's mu
	prev, next *Ticket[Q, A]
}

type SourceAnswer[A any] struct {
	What A
	Err  error
}

// Answer answers a ticket. Only the first call counts: after it, the channel may belong to
// another ticket.
func (t *Ticket[Q, A]) Answer(a A, err error) {
	if t.answered {
		return
	}
	t.answered = true
	t.Done <- SourceAnswer[A]{a, err}
}

// Fail answers a ticket with an error.
func (t *Ticket[Q, A]) Fail(err error) {
	var none A
	t.Answer(none, err)
}

// most are the bounds of the kinds.
var most = [2]int{MaxWaiting, MaxSettling}

// kind is the index of a ticket's count.
func (t *Ticket[Q, A]) kind() int {
	if t.Settles {
		return 1
	}
	return 0
}

// queue is what waits for one shard. It exists while it has a goroutine.
type queue[Q, A any] struct {
	name        string
	first, last *Ticket[Q, A]
	waiting     [2]int
	before      int           // how many tickets the last call had
	wanted      int           // how many a lingering call waits for; 0: none lingers
	enough      chan struct{} // closed when they have come
	outside     []*outsider   // callers of AwaitRoom, the first ones first
}

func NewCombiner[Q, A any](send func(string, []*Ticket[Q, A])) *Combiner[Q, A] {
	c := &Combiner[Q, A]{send: send, queues: make(map[string]*queue[Q, A])}
	c.answers.New = func() any { return make(chan SourceAnswer[A], 1) }
	return c
}

// Do sends a request together with others. It returns when there is an answer or when ctx ends:
// a request that was not sent by then is never sent.
func (c *Combiner[Q, A]) Do(ctx context.Context, name string, t *Ticket[Q, A]) (A, error) {
	c.Ask(ctx, name, t)
	return c.AnswerTo(t)
}

// Ask queues tickets, to go together as far as there is room. Call AnswerTo for each of them.
func (c *Combiner[Q, A]) Ask(ctx context.Context, name string, batch ...*Ticket[Q, A]) {
	for _, t := range batch {
		t.Ctx, t.Done = ctx, c.answers.Get().(chan SourceAnswer[A])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range batch {
		if err := c.enter(name, t); err != nil {
			t.Fail(err)
		}
	}
}

// AnswerTo waits for the answer to a ticket until the ticket's context ends.
func (c *Combiner[Q, A]) AnswerTo(t *Ticket[Q, A]) (A, error) {
	a, ok := waitFor(t.Ctx, t.Done)
	if !ok {
		if c.leave(t) {
			c.answers.Put(t.Done)
			return a.What, ErrNoTime
		}
		select {
		case a = <-t.Done: // just in time
		default:
			return a.What, errLeft // its answer may still come, so the channel is not reused
		}
	}
	c.answers.Put(t.Done)
	return a.What, a.Err
}

// run sends what waits in a queue, until the queue is empty.
func (c *Combiner[Q, A]) run(q *queue[Q, A]) {
	for {
		c.await(q)
		batch := c.take(q)
		if batch == nil {
			return
		}
		if len(batch) == 0 { // those who were let in may come
			continue
		}
		Safely(batch, func() { c.send(q.name, batch) })
		c.sent(batch)
	}
}

// Safely calls send and answers every ticket of a batch even if send panics: the callers wait
// in other goroutines.
func Safely[Q, A any](batch []*Ticket[Q, A], send func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err := fmt.Errorf("%w: a call has failed: %v", shard.ErrUnavailable, p)
		for _, t := range batch {
			t.Fail(err)
		}
	}()
	send()
}

// await waits, for a short time, until as many tickets wait as went together the last time.
// After a single ticket it does not wait at all.
func (c *Combiner[Q, A]) await(q *queue[Q, A]) {
	c.mu.Lock()
	want := q.before
	if want < 2 || q.count() >= want || c.closed {
		c.mu.Unlock()
		return
	}
	q.wanted, q.enough = want, make(chan struct{})
	c.mu.Unlock()
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-q.enough:
	case <-timer.C:
	}
}

// take removes what goes together in the next call, and lets others in. Nil: the queue was empty
// and has ended; empty: some were let in.
func (c *Combiner[Q, A]) take(q *queue[Q, A]) []*Ticket[Q, A] {
	c.mu.Lock()
	defer c.mu.Unlock()
	q.wanted = 0
	var batch []*Ticket[Q, A]
	weight := 0
	for t := q.first; t != nil && len(batch) < MaxTogether; t = q.first {
		if weight += t.Weight; weight > MaxWeight && len(batch) > 0 {
			break
		}
		c.remove(t)
		if t.Ctx.Err() != nil {
			weight -= t.Weight
			t.Fail(ErrNoTime)
			continue
		}
		batch = append(batch, t)
	}
	q.before = len(batch)
	switch {
	case batch != nil:
		c.sending.Batches++
		c.sending.Sending += len(batch)
	case len(q.outside) > 0:
		batch, q.before = []*Ticket[Q, A]{}, MaxTogether
	default:
		delete(c.queues, q.name)
	}
	c.letIn(q, Crowded-q.waiting[0])
	return batch
}

// Close rejects waiting and new requests. Calls under way continue; Wait waits for them.
func (c *Combiner[Q, A]) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, q := range c.queues {
		for t := q.first; t != nil; t = q.first {
			c.remove(t)
			t.Fail(ErrClosed)
		}
		c.letIn(q, len(q.outside))
		q.hurry()
	}
}

func (c *Combiner[Q, A]) Wait() { c.running.Wait() }

// FailAll answers every ticket of a batch with an error.
func FailAll[Q, A any](batch []*Ticket[Q, A], err error) {
	for _, t := range batch {
		t.Fail(err)
	}
}

// CallUntil is when a call for a batch must have its answer: as late as its callers wait, but
// no later than twice the timeout, so that others do not wait in vain behind a dead connection.
func CallUntil[Q, A any](batch []*Ticket[Q, A], timeout time.Duration) time.Time {
	longest := time.Now().Add(2 * timeout)
	var latest time.Time
	for _, t := range batch {
		until, ok := t.Ctx.Deadline()
		if !ok || until.After(longest) {
			return longest
		}
		if until.After(latest) {
			latest = until
		}
	}
	return latest
}
