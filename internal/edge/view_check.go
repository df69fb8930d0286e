package edge

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// checkPause is the time between two checks of one sale, unless checkTogether attempts
	// wait: a check costs the edge three times what a refusal costs, and it costs Redis too.
	checkPause    = time.Millisecond
	checkTogether = 64
	// maxChecking bounds the callers and connections that wait for one check.
	maxChecking = combine.MaxWaiting
)

// errBehind says that the journal was not read far enough in time.
var errBehind = fmt.Errorf("%w: the journal could not be read in time", shard.ErrUnavailable)

// checks find out whether the views of sales are current. A view is behind Redis by as
// long as an entry of the journal takes to arrive, and by much more when the connection
// stalls: what another edge has bound meanwhile is not in it. A check asks the primary for
// the newest seq of a sale, and waits until the view has that entry.
//
// A check counts for the attempts that came before it was sent. Each sale has one under
// way at most; all attempts that come meanwhile share the next one.
type checks struct {
	id       uint64
	edge     *Edge
	ctx      context.Context // of following
	journals *shard.Journals

	mu      sync.Mutex
	sales   map[string]*saleChecks // those that have a goroutine
	closed  bool
	running sync.WaitGroup
}

// saleChecks are the checks of one sale, while it has a goroutine.
type saleChecks struct {
	meta   string        // the key of the shard's meta
	next   *check        // the one that was not sent yet; nil: none is wanted. Guarded by the mu of checks
	read   chan struct{} // a reader has made a step
	enough chan struct{} // checkTogether attempts wait
}

// check is one check, and the attempts that share it.
type check struct {
	of    uint64 // the id of its checks
	sale  string
	until time.Time     // when the time of the first attempt is up
	sent  time.Duration // by sinceStarted; 0: it was not sent yet. Guarded by the mu of checks
	done  chan struct{}

	// until it is sent, the mu of checks guards these
	attempts int // that it counts for
	waiting  int // callers and connections that wait for it
	wakes    []func()

	// err and ended are the result, once done is closed. Which view is current, the view knows.
	err   error
	ended time.Time
}

func (k *check) hasEnded() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

var lastChecks atomic.Uint64

func newChecks(e *Edge) *checks {
	return &checks{id: lastChecks.Add(1), edge: e, sales: make(map[string]*saleChecks)}
}

// open lets checks use connections until ctx ends. It must be called before there is a view.
func (c *checks) open(ctx context.Context, journals *shard.Journals) {
	c.ctx, c.journals = ctx, journals
}

// close ends all checks and waits for them. The context of open has ended.
func (c *checks) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}

// current returns a check of a sale that was sent after an attempt arrived and has ended.
// ErrLater: it has not, and the attempt's Waiting will be woken.
func (c *checks) current(sale string, a *Arrival) (*check, error) {
	k, err := c.join(sale, a)
	switch {
	case err != nil:
		return nil, err
	case a.Waiting == nil:
		<-k.done
	case !k.hasEnded():
		return nil, ErrLater
	}
	return k, nil
}

// join finds the check that will be sent next, or one that the attempt's connection waits for
// and that was sent after the attempt arrived.
func (c *checks) join(sale string, a *Arrival) (*check, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, combine.ErrClosed
	}
	w := a.Waiting
	if k := w.sent(c, sale, a.since()); k != nil {
		return k, nil
	}
	s := c.sales[sale]
	if s == nil {
		s = &saleChecks{meta: c.edge.shard.ShardKeys(sale)[shard.MetaKey], read: make(chan struct{}, 1), enough: make(chan struct{}, 1)}
		c.sales[sale] = s
		c.running.Go(func() { c.run(sale, s) })
	}
	if s.next == nil {
		s.next = &check{of: c.id, sale: sale, until: time.Now().Add(c.edge.shard.Timeout()), done: make(chan struct{})}
	}
	k := s.next
	if k.attempts++; k.attempts == checkTogether {
		select {
		case s.enough <- struct{}{}:
		default: // of a check that was sent by then: this one does not pause either
		}
	}
	if w.waitsFor(k) {
		return k, nil
	}
	if k.waiting++; k.waiting > maxChecking {
		return nil, combine.ErrBusy
	}
	w.add(k)
	return k, nil
}

// run sends the checks of a sale, one after the other, until none is wanted.
func (c *checks) run(sale string, s *saleChecks) {
	for {
		runtime.Gosched() // attempts that are about to come share this check
		k := c.take(sale, s)
		if k == nil {
			return
		}
		f, err := c.send(sale, s, k.until)
		if f != nil {
			f.current.Store(int64(k.sent))
		}
		k.err, k.ended = err, time.Now()
		close(k.done)
		for _, wake := range k.wakes {
			wake()
		}
		k.wakes = nil // a connection may keep the check for long
		loop.Rest(c.ctx, checkPause-(sinceStarted()-k.sent), s.enough)
	}
}

// take closes the next check to attempts that come later.
func (c *checks) take(sale string, s *saleChecks) *check {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := s.next
	s.next = nil
	if k == nil {
		delete(c.sales, sale)
		return nil
	}
	k.sent = sinceStarted()
	return k
}

// send asks for the newest entry and waits until the view has it.
func (c *checks) send(sale string, s *saleChecks, until time.Time) (*followed, error) {
	ctx, cancel := context.WithDeadline(c.ctx, until)
	defer cancel()
	f := c.edge.viewOf(sale)
	if f == nil {
		return nil, nil
	}
	had := f.seq.Load()
	epoch, seq, err := c.newest(ctx, sale, s.meta)
	if err != nil {
		(*c.edge.metrics.Load()).RedisFailed("reserve")
		return nil, err
	}
	for {
		f := c.edge.viewOf(sale)
		switch {
		case f == nil || f.epoch != epoch || seq < had: // another life of the sale, or Redis has lost entries
			return nil, nil
		case f.seq.Load() >= seq:
			return f, nil
		}
		f.hurry()
		select {
		case <-s.read:
		case <-ctx.Done():
			(*c.edge.metrics.Load()).RedisFailed("watch")
			return nil, errBehind
		}
	}
}

// newest reads how far the journal of a sale has come.
func (c *checks) newest(ctx context.Context, sale, key string) (epoch string, seq int64, err error) {
	at, err := c.journals.Newest(ctx, key)
	if err != nil {
		return "", 0, err
	}
	if at.Epoch == "" {
		return "", 0, fmt.Errorf("%w: the sale %s is gone from it", shard.ErrUnavailable, sale)
	}
	return at.Epoch, at.Seq, nil
}

// stepped tells all checks that a reader has made a step.
func (c *checks) stepped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sales {
		select {
		case s.read <- struct{}{}:
		default:
		}
	}
}
