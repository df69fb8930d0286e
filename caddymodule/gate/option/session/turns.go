// Package session is the gate's option one_at_a_time: of one session, one request that may
// change something is at the shop at a time.
package session

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/store/lease"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// passTimeout is how long a request that is no attempt may keep its session's turn.
	passTimeout = 30 * time.Second
	// maxWaiting is how many requests wait for one credential.
	maxWaiting = 8
	// manyClients is how many different addresses wait for a credential that is probably no
	// session's.
	manyClients = 4
)

// ErrPending reports that another request of the session is under way, and did not end in time.
var ErrPending = errors.New("another request of the session is under way")

// turns has the credentials that are in use in this process. Configurations share it: requests
// of an old one are still under way when the new one serves.
var turns = table{byKey: make(map[Key]*queue)}

// warned is when operators were last told of a shared credential, in nanoseconds.
var warned atomic.Int64

// WarnShared reports whether operators are to be told now that a credential is shared: once a
// minute.
func WarnShared() bool {
	before, now := warned.Load(), time.Now().UnixNano()
	return now-before > int64(time.Minute) && warned.CompareAndSwap(before, now)
}

// Key stands for one credential.
type Key [16]byte

type table struct {
	mu    sync.Mutex
	byKey map[Key]*queue
}

// queue has the requests that wait for one credential, the first in front. It exists while a
// request has the credential.
type queue struct{ waiting []*waiter }

type waiter struct {
	turn   chan struct{} // closed when it is this request's turn
	client string
}

// Exclusion is what a request has while it is the only one of its session. The zero value is none.
type Exclusion struct {
	keys   []Key
	leases []*lease.Lease
	// unleased: a lease could not be had, so that another edge may serve the session too.
	unleased bool
	once     sync.Once
	first    *Exclusion // which the request has besides; nil: none
}

// With returns both, as one; each may be nil.
func (t *Exclusion) With(second *Exclusion) *Exclusion {
	if t == nil || second == nil {
		return cmp.Or(t, second)
	}
	second.first = t
	return second
}

// Has reports whether a credential is among those of the turn; false on nil.
func (t *Exclusion) Has(k Key) bool {
	return t != nil && (slices.Contains(t.keys, k) || t.first.Has(k))
}

// Edges is where edges agree on the turns of sessions.
type Edges interface {
	// Begin keeps Client open until End is called.
	Begin() bool
	End()
	Client() *shard.Client
}

// NoEdges stands for the edges where none can be asked.
type NoEdges struct{}

// Begin returns false.
func (NoEdges) Begin() bool { return false }

// End does nothing.
func (NoEdges) End() {}

// Client returns nil.
func (NoEdges) Client() *shard.Client { return nil }

// Take waits until no other request has one of the credentials, at this edge and, with edges,
// at any of them. keys are sorted and differ, so that two requests cannot wait for each other.
// Where Redis does not answer, the turn is that of this edge. shared: the credential is waited
// for by so many clients that it is probably not that of one session.
func Take(ctx context.Context, keys []Key, client string, edges Edges) (t *Exclusion, shared bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timing.SessionWait.Now())
	defer cancel()
	if t, shared, err = takeHere(ctx, keys, client); err != nil || edges == nil {
		return t, shared, err
	}
	for _, key := range keys {
		if !edges.Begin() {
			t.unleased = true
			return t, shared, nil
		}
		l, err := lease.Acquire(ctx, edges.Client(), hex.EncodeToString(key[:]), edges.End)
		switch {
		case errors.Is(err, lease.ErrTaken):
			t.End()
			return nil, shared, pending(ctx)
		case err != nil:
			t.unleased = true
			return t, shared, nil
		}
		t.leases = append(t.leases, l)
	}
	return t, shared, nil
}

// pending is why a request has not got its turn: it has waited for too long, or its client has
// left.
func pending(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ErrPending
	}
	return ctx.Err()
}

// takeHere waits until no other request at this edge has one of the credentials.
func takeHere(ctx context.Context, keys []Key, client string) (t *Exclusion, shared bool, err error) {
	t = new(Exclusion)
	for _, key := range keys {
		mine, many, ok := turns.enter(key, client)
		shared = shared || many
		if !ok {
			t.End()
			return nil, shared, ErrPending
		}
		if mine == nil {
			t.keys = append(t.keys, key)
			continue
		}
		select {
		case <-mine.turn:
			t.keys = append(t.keys, key)
			continue
		case <-ctx.Done():
			err = pending(ctx)
		}
		if turns.leave(key, mine) { // it became this request's turn meanwhile
			t.keys = append(t.keys, key)
		}
		t.End()
		return nil, shared, err
	}
	return t, shared, nil
}

// Pass returns the context of a request that is no attempt and has the turn. It goes on when its
// client leaves, because the shop goes on too. After 30s the turn ends, and the request does if its
// client has left. Call done when it has ended.
func (t *Exclusion) Pass(client context.Context) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(client))
	late := time.AfterFunc(passTimeout, func() {
		t.End()
		context.AfterFunc(client, cancel)
	})
	return ctx, func() {
		late.Stop()
		cancel()
	}
}

// End lets the next request of each credential in. It may be called more than once, and on nil.
func (t *Exclusion) End() {
	if t == nil {
		return
	}
	t.once.Do(func() {
		t.first.End()
		for _, l := range t.leases {
			l.GiveUp()
		}
		for _, key := range t.keys {
			turns.next(key)
		}
	})
}

// WasAlone reports whether no other request of the session can have been at the shop: the turn is
// one of this edge only, or no other edge has had it. Without a turn it is true.
func (t *Exclusion) WasAlone() bool {
	if t == nil {
		return true
	}
	return t.first.WasAlone() && !t.unleased && !slices.ContainsFunc(t.leases, func(l *lease.Lease) bool { return !l.StillHeld() })
}

// enter takes the credential, or joins those that wait for it; ok is false if they are too many.
func (ts *table) enter(key Key, client string) (mine *waiter, many, ok bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	q := ts.byKey[key]
	if q == nil {
		ts.byKey[key] = new(queue)
		return nil, false, true
	}
	clients := map[string]bool{client: true}
	for _, w := range q.waiting {
		clients[w.client] = true
	}
	if many = len(clients) >= manyClients; len(q.waiting) >= maxWaiting {
		return nil, many, false
	}
	mine = &waiter{make(chan struct{}), client}
	q.waiting = append(q.waiting, mine)
	return mine, many, true
}

// leave takes a request out of those that wait. It returns true if its turn has come.
func (ts *table) leave(key Key, w *waiter) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	q := ts.byKey[key]
	if q != nil {
		if i := slices.Index(q.waiting, w); i >= 0 {
			q.waiting = slices.Delete(q.waiting, i, i+1)
			return false
		}
	}
	return true
}

// next lets the first of those that wait in.
func (ts *table) next(key Key) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	q := ts.byKey[key]
	if len(q.waiting) == 0 {
		delete(ts.byKey, key)
		return
	}
	close(q.waiting[0].turn)
	q.waiting = slices.Delete(q.waiting, 0, 1)
}
