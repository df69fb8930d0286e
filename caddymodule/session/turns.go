// Package session is the gate's option one_at_a_time: of one session, one request that may
// change something is at the shop at a time.
package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxWait is how long a request waits for the others of its session.
	maxWait = 5 * time.Second
	// passTimeout is how long a request that is no attempt may keep its session's turn.
	passTimeout = 30 * time.Second
	// maxWaiting is how many requests wait for one credential.
	maxWaiting = 8
	// manyClients is how many different addresses wait for a credential that is probably no
	// session's.
	manyClients = 4
)

// ErrPending: another request of the session is under way, and did not end in time.
var ErrPending = errors.New("another request of the session is under way")

// turns has the credentials that are in use in this process. Configurations share it: requests
// of an old one are still under way when the new one serves.
var turns = table{byKey: make(map[Key]*queue)}

// warned is when operators were last told of a shared credential, in nanoseconds.
var warned atomic.Int64

// WarnShared says whether operators are to be told now that a credential is shared: once a
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

// Turn is what a request has while it is the only one of its session. The zero value is none.
type Turn struct {
	keys []Key
	once sync.Once
}

// Take waits until no other request has one of the credentials. keys are sorted and differ, so
// that two requests cannot wait for each other. shared: the credential is waited for by so
// many clients that it is probably not that of one session.
func Take(ctx context.Context, keys []Key, client string) (t *Turn, shared bool, err error) {
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	t = new(Turn)
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
		case <-timeout.C:
			err = ErrPending
		case <-ctx.Done():
			err = ctx.Err()
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
func (t *Turn) Pass(client context.Context) (ctx context.Context, done func()) {
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
func (t *Turn) End() {
	if t == nil {
		return
	}
	t.once.Do(func() {
		for _, key := range t.keys {
			turns.next(key)
		}
	})
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
