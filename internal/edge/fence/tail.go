package fence

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"github.com/stockgate/stockgate/internal/store/reservation"
)

const (
	// maxTailBytes bounds what an edge keeps of the journals of all sales, so that it can
	// give it to a server that lacks it. The oldest entries of a sale go first, see room.
	maxTailBytes = 64 << 20
	// maxOwn bounds the promises of all sales that an edge remembers, about 1 KB each, and
	// maxOwnOfSale those of one sale. The oldest of a sale go first, see room.
	maxOwn, maxOwnOfSale = 100_000, 20_000
	// sentAtOnce bounds the bytes of one call that gives a server its entries.
	sentAtOnce = 256 << 10
)

// tail is the newest part of a sale's journal that the edge has read, in the newest epoch that it
// has read of. Where the edge began to read again elsewhere, entries between may be missing.
type tail struct {
	mu      sync.Mutex
	epoch   int64
	entries []entry
	bytes   share
}

type entry struct {
	first, last   int64
	at, movements string
}

// add takes an entry. One that is there already changes nothing: a server that gets again what
// it lacks tells it a second time. Another one with the same number begins another history, and
// one of a later epoch another journal.
func (t *tail) add(bytes *room, epoch, first, last int64, at, movements string) {
	t.append(bytes, epoch, entry{first, last, at, movements})
	bytes.makeRoom()
}

func (t *tail) append(bytes *room, epoch int64, e entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes.room == nil {
		bytes.join(&t.bytes, t.dropOldest)
	}
	switch {
	case epoch < t.epoch:
		return
	case epoch > t.epoch:
		t.cutFrom(0)
		t.epoch = epoch
	}
	if i := t.find(e.first); i < len(t.entries) {
		if t.entries[i] == e {
			return
		}
		t.cutFrom(e.first)
	}
	t.entries = append(t.entries, e)
	t.bytes.change(int64(len(e.movements)))
}

// dropOldest drops the oldest entries of so many bytes, but never the newest entry.
func (t *tail) dropOldest(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n > 0 && len(t.entries) > 1 {
		size := int64(len(t.entries[0].movements))
		t.bytes.change(-size)
		n -= size
		t.entries[0] = entry{}
		t.entries = t.entries[1:]
	}
}

// cutFrom drops the entries that have numbers from first on.
func (t *tail) cutFrom(first int64) {
	for n := len(t.entries); n > 0 && t.entries[n-1].last >= first; n = len(t.entries) {
		t.bytes.change(-int64(len(t.entries[n-1].movements)))
		t.entries = t.entries[:n-1]
	}
}

// cutAfter drops the entries that have numbers after last.
func (t *tail) cutAfter(last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cutFrom(last + 1)
	t.entries = slices.Clone(t.entries) // without what was dropped
}

// addEarlier takes an entry that the edge has looked up, and drops what lies before all others:
// if there is no other entry, it begins the tail.
func (t *tail) addEarlier(bytes *room, epoch, first, last int64, at, movements string) {
	t.mu.Lock()
	earlier := epoch == t.epoch && len(t.entries) > 0 && first < t.entries[0].first
	t.mu.Unlock()
	if !earlier {
		t.add(bytes, epoch, first, last, at, movements)
	}
}

// find returns the index of the first entry that ends with a number or after it.
func (t *tail) find(number int64) int {
	if n := len(t.entries); n == 0 || t.entries[n-1].last < number {
		return n
	}
	i, _ := slices.BinarySearchFunc(t.entries, number, func(e entry, n int64) int { return int(e.last - n) })
	return i
}

// through returns the number up to which the tail has all entries of an epoch after one.
func (t *tail) through(epoch, number int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch != t.epoch {
		return number
	}
	for _, e := range t.entries[t.find(number+1):] {
		if e.first > number+1 {
			break
		}
		number = e.last
	}
	return number
}

// last is the newest number of an epoch; 0: there is none.
func (t *tail) last(epoch int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch != t.epoch || len(t.entries) == 0 {
		return 0
	}
	return t.entries[len(t.entries)-1].last
}

// after returns the entries of an epoch with numbers after last, as arguments of lua/fence.lua in
// pieces of which each is small enough for one call. The last piece may be empty.
func (t *tail) after(epoch, last int64) [][]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	pieces, bytes := [][]any{nil}, 0
	if epoch != t.epoch {
		return pieces
	}
	for _, e := range t.entries[t.find(last+1):] {
		if bytes > sentAtOnce {
			pieces, bytes = append(pieces, nil), 0
		}
		p := &pieces[len(pieces)-1]
		*p = append(*p, strconv.FormatInt(e.last, 10), e.at, e.movements)
		bytes += len(e.movements)
	}
	return pieces
}

// promised is what this edge was promised of a sale, the newest of it.
type promised struct {
	mu       sync.Mutex
	promises []promise // in the order in which the answers came
	next     int       // which one the next replaces, once there is no room for more
	count    share
}

type promise struct {
	at   movementNumber
	what reservation.Promise
}

// movementNumber is a number in the journal of an epoch.
type movementNumber struct{ epoch, seq int64 }

// compare says which of two places is later.
func (p movementNumber) compare(q movementNumber) int {
	return cmp.Or(cmp.Compare(p.epoch, q.epoch), cmp.Compare(p.seq, q.seq))
}

// nowhere is before every place.
var nowhere = movementNumber{-1, -1}

// add remembers a promise. count has those of all sales.
func (o *promised) add(count *room, at movementNumber, p reservation.Promise) {
	o.append(count, promise{at, p})
	count.makeRoom()
}

func (o *promised) append(count *room, p promise) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count.room == nil {
		count.join(&o.count, o.dropOldest)
	}
	if len(o.promises) < maxOwnOfSale {
		o.promises = append(o.promises, p)
		o.count.change(1)
		return
	}
	o.promises[o.next] = p
	o.count.use()
	o.next = (o.next + 1) % len(o.promises)
}

// dropOldest drops the oldest promises, but never the newest one.
func (o *promised) dropOldest(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	left := int(max(int64(len(o.promises))-n, min(1, int64(len(o.promises)))))
	inTurn := slices.Concat(o.promises[o.next:], o.promises[:o.next])
	o.count.change(int64(left - len(o.promises)))
	o.promises, o.next = slices.Clone(inTurn[len(inTurn)-left:]), 0
}

// after returns the promises after a place, in their order.
func (o *promised) after(last movementNumber) []reservation.Promise {
	o.mu.Lock()
	var found []promise
	for _, p := range o.promises {
		if p.at.compare(last) > 0 {
			found = append(found, p)
		}
	}
	o.mu.Unlock()
	slices.SortStableFunc(found, inOrder)
	out := make([]reservation.Promise, len(found))
	for i, p := range found {
		out[i] = p.what
	}
	return out
}

func inOrder(a, b promise) int {
	return cmp.Or(cmp.Compare(a.at.epoch, b.at.epoch), cmp.Compare(a.at.seq, b.at.seq))
}

// forget drops the promises after a place, which were told again or are lost.
func (o *promised) forget(last movementNumber) {
	o.drop(func(at movementNumber) bool { return at.compare(last) > 0 })
}

// forgetBefore drops the promises of earlier epochs.
func (o *promised) forgetBefore(epoch int64) {
	o.drop(func(at movementNumber) bool { return at.epoch < epoch })
}

func (o *promised) drop(drop func(movementNumber) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := len(o.promises)
	if before == 0 {
		return
	}
	o.promises = slices.Clone(slices.DeleteFunc(o.promises, func(p promise) bool { return drop(p.at) }))
	o.count.change(int64(len(o.promises) - before))
	slices.SortStableFunc(o.promises, inOrder)
	o.next = 0
}
