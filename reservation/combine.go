package reservation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// mostTogether and mostWeight bound what one call of a script does: Redis does
	// nothing else meanwhile.
	mostTogether, mostWeight = 128, 4096
	// mostWaiting bounds the attempts that wait for Redis on one edge, and as well what
	// is to be told to it about earlier ones.
	mostWaiting = 10_000
	// linger is how long a call waits for as many as the last one had.
	linger = time.Millisecond
)

// errBusy: more wait for Redis than it can be asked about in time.
var errBusy = fmt.Errorf("%w: too many wait for it (%w)", ErrUnavailable, ErrNotSent)

var (
	errClosed = fmt.Errorf("%w: this edge has stopped (%w)", ErrUnavailable, ErrNotSent)
	errNoTime = fmt.Errorf("%w: its time was up while it waited for others (%w)", ErrUnavailable, ErrNotSent)
	// errLeft: it may have run, or may run still.
	errLeft = fmt.Errorf("%w: %w", ErrUnavailable, errors.New("its time was up before the answer came"))
)

// combiner does what many ask for at the same time in few calls. Each queue has one
// batch under way at most; what has queued meanwhile goes in the next one, in the order
// in which it came. Who asks alone does not wait for others.
type combiner struct {
	// send does what a batch asks for and answers every ticket of it.
	send func(queue string, batch []*ticket)

	mu      sync.Mutex
	queues  map[string]*queue // those that have a goroutine
	waiting [2]int            // in all queues; of claims, and of what settles
	closed  bool
	running sync.WaitGroup
}

// ticket is one thing that somebody asks for.
type ticket struct {
	ctx     context.Context // until when he waits
	claim   *claiming       // of a shard: an attempt; else
	op      operation       // of a shard
	keys    []string        // of a rate
	args    []any           // of a rate
	weight  int             // about how much work it is
	settles bool            // it ends something: it is not turned away for new attempts

	done     chan answer // has room for the one answer, whether or not anybody waits
	answered bool        // belongs to who answers

	queue      *queue // nil: it does not wait any more; guarded by the combiner's mu
	prev, next *ticket
}

type answer struct {
	reply reply
	seq   int64 // the shard's, after the call
	err   error
}

// answer may be called again: the channel can be somebody else's by then.
func (t *ticket) answer(r reply, seq int64, err error) {
	if t.answered {
		return
	}
	t.answered = true
	t.done <- answer{r, seq, err}
}

// kind is the place of a ticket's count.
func (t *ticket) kind() int {
	if t.settles {
		return 1
	}
	return 0
}

// queue is what waits for one shard. It is there while it has a goroutine.
type queue struct {
	name        string
	first, last *ticket
	waiting     [2]int
	before      int           // how many the last call had
	wanted      int           // how many a lingering call waits for; 0: none lingers
	enough      chan struct{} // they are there
}

func newCombiner(send func(string, []*ticket)) *combiner {
	return &combiner{send: send, queues: make(map[string]*queue)}
}

// do asks for something together with others. It returns when there is an answer or
// when ctx ends: what was not sent until then is never sent.
func (c *combiner) do(ctx context.Context, name string, t *ticket) (reply, int64, error) {
	c.ask(ctx, name, t)
	return c.answerTo(t)
}

// ask queues tickets, to go together as far as there is room. For each of them answerTo
// must be called.
func (c *combiner) ask(ctx context.Context, name string, batch ...*ticket) {
	for _, t := range batch {
		t.ctx, t.done = ctx, answers.Get().(chan answer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range batch {
		if err := c.enter(name, t); err != nil {
			t.answer(nil, 0, err)
		}
	}
}

// answerTo waits for the answer to a ticket, as long as it may.
func (c *combiner) answerTo(t *ticket) (reply, int64, error) {
	a, ok := waitFor(t.ctx, t.done)
	if !ok {
		if c.leave(t) {
			answers.Put(t.done)
			return nil, 0, errNoTime
		}
		select {
		case a = <-t.done: // just in time
		default:
			return nil, 0, errLeft // its answer may come yet: nobody else may have the channel
		}
	}
	answers.Put(t.done)
	return a.reply, a.seq, a.err
}

// answers are channels that are empty, and into which nobody will write.
var answers = sync.Pool{New: func() any { return make(chan answer, 1) }}

// run sends what waits in a queue, until nothing does.
func (c *combiner) run(q *queue) {
	for {
		c.await(q)
		batch := c.take(q)
		if batch == nil {
			return
		}
		safely(batch, func() { c.send(q.name, batch) })
	}
}

// safely answers everybody of a batch, whatever happens: they wait in other goroutines.
func safely(batch []*ticket, send func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err := fmt.Errorf("%w: a call has failed: %v", ErrUnavailable, p)
		for _, t := range batch {
			t.answer(nil, 0, err)
		}
	}()
	send()
}

// await waits until as many are there as went together the last time, but not long.
// After one that was alone it does not wait at all.
func (c *combiner) await(q *queue) {
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
func (c *combiner) take(q *queue) []*ticket {
	c.mu.Lock()
	defer c.mu.Unlock()
	q.wanted = 0
	var batch []*ticket
	weight := 0
	for t := q.first; t != nil && len(batch) < mostTogether; t = q.first {
		if weight += t.weight; weight > mostWeight && len(batch) > 0 {
			break
		}
		c.remove(t)
		if t.ctx.Err() != nil {
			weight -= t.weight
			t.answer(nil, 0, errNoTime)
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
func (c *combiner) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, q := range c.queues {
		for t := q.first; t != nil; t = q.first {
			c.remove(t)
			t.answer(nil, 0, errClosed)
		}
		q.hurry()
	}
}

func (c *combiner) wait() { c.running.Wait() }
