// Package fence keeps an edge's leases on the sales that it sells. A Redis that was promoted
// or restarted may lack movements: it sells nothing until the edges have said what they
// know, and gets from them what it lacks. docs/failover.md explains the protocol.
package fence

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

const (
	// renewEvery is how often an edge says that it lives.
	renewEvery = 500 * time.Millisecond
	// unusedFor is how long an edge keeps its lease on a sale that no call needs.
	unusedFor = time.Minute
	// watchEvery is how often an edge says that it lives of a sale that it does not sell now, and
	// watchAtOnce of how many sales at a time.
	watchEvery, watchAtOnce = 20 * time.Second, 100
)

// Metrics receives what a Keeper counts. Its methods must be safe for concurrent use and fast.
type Metrics interface {
	// Fenced is called when a sale begins to wait (+1) and when it is sold again (-1).
	Fenced(change int)
	// Lost is called with the number of promises, of edges and of movements that a fence had to
	// give up.
	Lost(promises, edges, movements int64)
}

// Keeper keeps the leases of one edge. It is safe for concurrent use.
type Keeper struct {
	store   *reservation.Store
	shard   *shard.Client
	id      string
	log     *zap.Logger
	metrics Metrics

	ledger atomic.Pointer[Ledger] // nil: there is none

	mu      sync.Mutex
	ctx     context.Context // nil: it does not run
	stop    context.CancelFunc
	members map[string]*member
	bytes   *room // of journals
	count   *room // of promises
	running sync.WaitGroup
}

// New makes a Keeper for an edge on a store. It does nothing before Run.
func New(s *reservation.Store, log *zap.Logger, metrics Metrics) *Keeper {
	return &Keeper{store: s, shard: s.Shard(), id: newID(), log: log, metrics: metrics, members: make(map[string]*member),
		bytes: newRoom(maxTailBytes), count: newRoom(maxOwn)}
}

// newID names an edge for operators, and no other process has the same.
func newID() string {
	machine, err := os.Hostname()
	if err != nil {
		machine = "edge"
	}
	return machine + "-" + rand.Text()
}

// Start begins to keep leases, until ctx ends. Promises are remembered from then on.
func (k *Keeper) Start(ctx context.Context) {
	k.mu.Lock()
	k.ctx, k.stop = context.WithCancel(ctx)
	k.mu.Unlock()
	k.shard.Lead(k)
	k.store.Keep(k)
}

// ID names this edge to the others, in logs and to the doctor. It begins with the name of the
// machine.
func (k *Keeper) ID() string { return k.id }

// Wait returns when every goroutine has ended, after the context of Start.
func (k *Keeper) Wait() { k.running.Wait() }

// Acquire implements [shard.Leases].
func (k *Keeper) Acquire(ctx context.Context, sale string) error {
	m := k.member(sale)
	for {
		answered, err := m.wait()
		if m.clock.LeaseRuns() {
			return nil
		}
		if err != nil {
			return err
		}
		if !k.begin(m) {
			return shard.ErrStarting
		}
		m.hurry()
		select {
		case <-answered:
			if _, err := m.wait(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Fenced implements [shard.Leases].
func (k *Keeper) Fenced(sale string) {
	m := k.member(sale)
	m.clock.EndLease() // the next call waits for an answer about the fence
	if k.begin(m) {
		m.hurry()
	}
}

// Watch says now and then that the edge lives, of sales and their epochs of which no call needs the
// lease: so a replica that lacks what comes next knows that there is a fence, and who is to be
// waited for.
func (k *Keeper) Watch(sales iter.Seq2[string, int64]) {
	if k.shard.Options.NoFence {
		return
	}
	due := 0
	for sale, epoch := range sales {
		m := k.member(sale)
		if m.watched.Load() == epoch && m.unheardFor() < watchEvery {
			continue
		}
		if due++; due > watchAtOnce || !k.begin(m) {
			return
		}
		m.watched.Store(epoch)
	}
}

// Promised implements [reservation.Promises].
func (k *Keeper) Promised(sale string, seq int64, p reservation.Promise) {
	m := k.member(sale)
	m.own.add(k.count, movementNumber{m.clock.Known().Term.Epoch, seq}, p)
}

// Read notes an entry that the edge has read in a sale's journal of an epoch.
func (k *Keeper) Read(sale string, epoch, first, last int64, at, movements string) {
	k.member(sale).tail.add(k.bytes, epoch, first, last, at, movements)
}

// ReadEarlier notes an entry that the edge has looked up in a sale's journal, because it was
// written before the edge began to read. Such entries come in their order.
func (k *Keeper) ReadEarlier(sale string, epoch, first, last int64, at, movements string) {
	k.member(sale).tail.addEarlier(k.bytes, epoch, first, last, at, movements)
}

// ReadBefore returns the number up to which an edge that begins to read after another number of
// an epoch need not look up what was written before: it has read that, or was promised nothing of it.
func (k *Keeper) ReadBefore(sale string, epoch, number int64) int64 {
	m := k.member(sale)
	if last := m.tail.last(epoch); last > 0 {
		return min(last, number)
	}
	if since := m.since.Load(); since != nil && since.epoch == epoch {
		return min(since.seq-1, number)
	}
	return number
}

// Deleted drops what the edge remembers of a sale that was deleted.
func (k *Keeper) Deleted(sale string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if m := k.members[sale]; m != nil {
		m.forget()
	}
}

// State describes a sale that is not sold because its shard is fenced, or because its server is
// older than what this edge knows.
type State struct {
	Sale string `json:"sale"`
	// Since is when this edge has learned of it.
	Since time.Time `json:"since"`
	// Absent is the number of edges that are waited for.
	Absent int64 `json:"absent"`
	// Stuck is the number of the journal's entry that cannot be applied again, so that an
	// operator must decide; 0: there is none.
	Stuck int64 `json:"stuck,omitzero"`
	// Contradicted: from Stuck on the server has another history than an edge knows, as an old
	// primary does that comes back after its successor was lost.
	Contradicted bool `json:"contradicted,omitzero"`
	// Owed is the number of promises that this edge, which came after the fence, has still to tell
	// again. Other edges sell.
	Owed int64 `json:"owed,omitzero"`
	// Replaced: the server goes on with a history that another one has taken over, as an old
	// primary does that an address leads to again. It has no fence, and none begins.
	Replaced bool `json:"replaced,omitzero"`
}

// States returns the sales that wait, in no order.
func (k *Keeper) States() []State {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []State
	for _, m := range k.members {
		if s := m.state.Load(); s != nil {
			all = append(all, *s)
		}
	}
	return all
}

// Resume sells a fenced sale again without what is missing. It reports whether the sale was
// fenced; if not, it changes nothing.
func (k *Keeper) Resume(ctx context.Context, sale string) (bool, error) {
	m := k.member(sale)
	defer m.hurry()
	for {
		r, _, _, err := k.shard.Beat(ctx, sale, m.beat("resume"))
		switch {
		case err != nil:
			return false, err
		case r.Code() == lua.NotFenced || r.Code() == lua.NoFence:
			return false, nil
		case r.Code() == lua.Fenced && r.Text(1) == "over":
			return true, nil
		case r.Code() != lua.Fenced || r.Number(6) == 0: // else what edges have said is being applied
			return false, refused(sale, r)
		}
	}
}

func (k *Keeper) member(sale string) *member {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.members[sale]
	if m == nil {
		m = &member{keeper: k, sale: sale, clock: k.shard.Clock(sale), wake: make(chan struct{}, 1), answered: make(chan struct{})}
		k.members[sale] = m
	}
	return m
}

// begin has a member's goroutine run. False: the Keeper does not run.
func (k *Keeper) begin(m *member) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx == nil || k.ctx.Err() != nil {
		return false
	}
	if !m.running {
		m.running = true
		k.running.Go(func() { m.run(k.ctx) })
	}
	return true
}

// end ends a member's goroutine unless a call has needed the lease meanwhile.
func (k *Keeper) end(m *member) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() == nil && (m.state.Load() != nil || time.Since(m.clock.LastUsed()) < unusedFor) {
		return false
	}
	m.running = false
	if k.ctx.Err() == nil {
		m.answer(nil) // the next call starts over
	}
	return true
}

// Leave says that the edge is stopped, so that no fence waits for it, unless some replica lacks
// what it was promised, and that it is not silent.
func (k *Keeper) Leave(ctx context.Context) {
	k.mu.Lock()
	if k.ctx == nil {
		k.mu.Unlock()
		return
	}
	k.stop() // or a heartbeat may come after the leave
	k.mu.Unlock()
	k.running.Wait()
	k.mu.Lock()
	var held []*member
	for _, m := range k.members {
		m.giveUp(m.owed) // no other process knows of it
		m.owed = nil
		if m.heard.Load() != nil && m.clock.Known().Term.Name != "" {
			held = append(held, m)
		}
	}
	k.mu.Unlock()
	if len(held) == 0 {
		return
	}
	does := "leave"
	if err := k.shard.AwaitAllReplicas(ctx); errors.Is(err, shard.ErrNotReplicated) {
		does = "stop"
	} else if err != nil {
		return
	}
	var all sync.WaitGroup
	next := make(chan *member)
	for range min(len(held), watchAtOnce) {
		all.Go(func() {
			for m := range next {
				_, _, _, _ = m.call(ctx, m.beat(does)) // without it the edge is silent after a minute
			}
		})
	}
	for _, m := range held {
		next <- m
	}
	close(next)
	all.Wait()
}
