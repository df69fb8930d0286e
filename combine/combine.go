package combine

import (
	"context"
	"errors"
	"fmt"
	"github.com/stockgate/stockgate/shard"
	"sync"
	"time"
)

const (
	// mostTogether and mostWeight bound what one call of a script does: Redis does
	// nothing else meanwhile.
	MaxTogether, MaxWeight = 128, 4096
	// mostWaiting bounds the attempts that wait for Redis on one edge, and as well what
	// is to be told to it about earlier ones.
	MaxWaiting = 10_000
	// linger is how long a call waits for as many as the last one had.
	linger = time.Millisecond
)

// errBusy: more wait for Redis than it can be asked about in time.
var ErrBusy = fmt.Errorf("%w: too many wait for it (%w)", shard.ErrUnavailable, shard.ErrNotSent)

var (
	ErrClosed = fmt.Errorf("%w: this edge has stopped (%w)", shard.ErrUnavailable, shard.ErrNotSent)
	ErrNoTime = fmt.Errorf("%w: its time was up while it waited for others (%w)", shard.ErrUnavailable, shard.ErrNotSent)
	// errLeft: it may have run, or may run still.
	errLeft = fmt.Errorf("%w: %w", shard.ErrUnavailable, errors.New("its time was up before the answer came"))
)

// combiner does what many ask for at the same time in few calls. Each queue has one
// batch under way at most; what has queued meanwhile goes in the next one, in the order
// in which it came. Who asks alone does not wait for others.
type Combiner[Q, A any] struct {
	// send does what a batch asks for and answers every ticket of it.
	send func(queue string, batch []*Ticket[Q, A])

	mu      sync.Mutex
	queues  map[string]*queue[Q, A] // those that have a goroutine
	waiting [2]int                  // in all queues; of claims, and of what settles
	closed  bool
	running sync.WaitGroup
	// answers are channels that are empty, and into which no goroutine will write.
	answers sync.Pool
}

// ticket is one request of one caller.
type Ticket[Q, A any] struct {
	Request Q
	Weight  int  // about how much work it is
	Settles bool // it ends something: it is not turned away for new attempts

	Ctx      context.Context      // until it ends the caller waits
	Done     chan SourceAnswer[A] // has room for the one answer, whether or not the caller still waits
	answered bool                 // belongs to the goroutine that answers

	queue      *queue[Q, A] // nil: it does not wait any more; guarded by the combiner's mu
	prev, next *Ticket[Q, A]
}

type SourceAnswer[A any] struct {
	What A
	Err  error
}

// answer answers a ticket. Only the first call counts: after it the channel can belong to
// another ticket.
func (t *Ticket[Q, A]) Answer(a A, err error) {
	if t.answered {
		return
	}
	t.answered = true
	t.Done <- SourceAnswer[A]{a, err}
}

// fail answers a ticket with an error.
func (t *Ticket[Q, A]) Fail(err error) {
	var none A
	t.Answer(none, err)
}

// kind is the place of a ticket's count.
func (t *Ticket[Q, A]) kind() int {
	if t.Settles {
		return 1
	}
	return 0
}

// queue is what waits for one shard. It is there while it has a goroutine.
type queue[Q, A any] struct {
	name        string
	first, last *Ticket[Q, A]
	waiting     [2]int
	before      int           // how many the last call had
	wanted      int           // how many a lingering call waits for; 0: none lingers
	enough      chan struct{} // they are there
}

func NewCombiner[Q, A any](send func(string, []*Ticket[Q, A])) *Combiner[Q, A] {
	c := &Combiner[Q, A]{send: send, queues: make(map[string]*queue[Q, A])}
	c.answers.New = func() any { return make(chan SourceAnswer[A], 1) }
	return c
}

// do asks for something together with others. It returns when there is an answer or
// when ctx ends: what was not sent until then is never sent.
func (c *Combiner[Q, A]) Do(ctx context.Context, name string, t *Ticket[Q, A]) (A, error) {
	c.Ask(ctx, name, t)
	return c.AnswerTo(t)
}

// ask queues tickets, to go together as far as there is room. For each of them answerTo
// must be called.
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

// answerTo waits for the answer to a ticket, as long as it may.
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
			return a.What, errLeft // its answer may come yet: nobody else may have the channel
		}
	}
	c.answers.Put(t.Done)
	return a.What, a.Err
}

// run sends what waits in a queue, until nothing does.
func (c *Combiner[Q, A]) run(q *queue[Q, A]) {
	for {
		c.await(q)
		batch := c.take(q)
		if batch == nil {
			return
		}
		Safely(batch, func() { c.send(q.name, batch) })
	}
}

// safely answers everybody of a batch, whatever happens: they wait in other goroutines.
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

// await waits until as many are there as went together the last time, but not long.
// After one that was alone it does not wait at all.
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

// take removes what goes together in the next call. Nil: there is nothing, and the
// queue has ended.
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
	if batch == nil {
		delete(c.queues, q.name)
	}
	q.before = len(batch)
	return batch
}

// close turns away who waits and who comes. What is under way goes on: wait waits
// for it.
func (c *Combiner[Q, A]) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, q := range c.queues {
		for t := q.first; t != nil; t = q.first {
			c.remove(t)
			t.Fail(ErrClosed)
		}
		q.hurry()
	}
}

func (c *Combiner[Q, A]) Wait() { c.running.Wait() }

// failAll answers every ticket of a batch with an error.
func FailAll[Q, A any](batch []*Ticket[Q, A], err error) {
	for _, t := range batch {
		t.Fail(err)
	}
}

// callUntil is when a call for a batch must have its answer: as long as a caller waits, but no
// longer than twice the timeout, so that others do not wait in vain behind a connection that
// is dead.
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
