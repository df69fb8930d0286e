package fence

import (
	"sync"
	"sync/atomic"
	"time"
)

// room is what an edge may remember of all sales together: bytes, or promises. Once that is full,
// the sales that have not been used for a while give way, then those that have the most.
type room struct {
	most int64
	now  func() time.Time
	held atomic.Int64

	mu    sync.Mutex
	parts []*share
}

// share is how much of a room one sale has.
type share struct {
	room *room // nil: the sale has had none of it
	held atomic.Int64
	// newest is how much of it was added last: a sale keeps that
	newest atomic.Int64
	used   atomic.Int64 // when it was last added to, in ns
	// dropOldest drops at least so much, if there is as much without the newest
	dropOldest func(n int64)
}

func newRoom(most int64) *room { return &room{most: most, now: time.Now} }

// join makes a part one of a room.
func (r *room) join(p *share, dropOldest func(n int64)) {
	p.room, p.dropOldest = r, dropOldest
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts = append(r.parts, p)
}

// change notes that a part has so much more.
func (p *share) change(n int64) {
	p.held.Add(n)
	p.room.held.Add(n)
	if n > 0 {
		p.newest.Store(n)
		p.use()
	}
}

// use notes that a part was added to.
func (p *share) use() { p.used.Store(p.room.now().UnixNano()) }

// makeRoom drops what there is too much of, and a little more, so that the next additions need not.
// The caller holds no lock of a part.
func (r *room) makeRoom() {
	if r.held.Load() <= r.most {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for least := r.most - r.most/64; r.held.Load() > least; {
		p, bound := r.next()
		if p == nil {
			return
		}
		before := p.held.Load()
		p.dropOldest(min(r.held.Load()-least, max(before-bound, before/64, 1)))
		if p.held.Load() == before {
			p.newest.Store(before)
		}
	}
}

// next is the part that gives way, and what it is to keep: of those that have not been used for a
// while the one that was used first, else the one that has the most. nil: there is none.
func (r *room) next() (p *share, bound int64) {
	unused := r.now().Add(-unusedFor).UnixNano()
	var oldest, largest *share
	var most, second int64
	for _, p := range r.parts {
		held := p.held.Load()
		if held <= p.newest.Load() {
			continue
		}
		if used := p.used.Load(); used < unused && (oldest == nil || used < oldest.used.Load()) {
			oldest = p
		}
		if held > most {
			largest, most, second = p, held, most
		} else {
			second = max(second, held)
		}
	}
	if oldest != nil {
		return oldest, 0
	}
	return largest, second
}
