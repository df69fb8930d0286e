package risk

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxLots bounds the lots of one sale. Beyond it two neighbours become one, which counts
// as at risk until the newer of them is safe.
const maxLots = 4096

// lot is units that were sold by the movements up to a seq of the journal, after those of
// the lot before it.
type lot struct {
	seq, units int64
	at         time.Duration // when this edge learned of the first of them
}

// account is what is at risk of one sale. A movement is safe when every replica has it, or
// the ledger.
type account struct {
	mu    sync.Mutex
	epoch string // of the shard; empty: not known yet
	safe  int64  // the newest seq that is safe
	read  int64  // up to where this edge has read the journal
	// lots are units that the journal says were sold, own those that this edge has sold and
	// not yet read there. Both are in the order of their seqs, and above safe.
	lots, own []lot
	// uncounted is up to where the journal may have sales that this edge has not counted,
	// because it began to read later; 0: it has counted all that are not safe.
	uncounted int64
	followed  time.Duration // when this edge asked where to follow the journal from
	proved    chan struct{} // closed at the next proof; nil: no goroutine waits

	units   atomic.Int64 // in lots and own
	oldest  atomic.Int64 // when the first of them came, by the tracker's clock, in ns; 0: none
	unknown atomic.Bool  // there may be sales that are not counted and not safe
	alone   atomic.Bool  // no replica has followed its server for long: none can take over
	stopped atomic.Bool  // the bound was reached, and nothing has become safe since
	refused atomic.Int64 // when a request was last refused, by the tracker's clock, in ns
	logged  atomic.Bool  // the log says that it has stopped
}

// newAccount makes the account of a sale of which nothing is known.
func newAccount() *account {
	a := new(account)
	a.unknown.Store(true)
	return a
}

// sold counts units that this edge has sold by the movements up to seq.
func (a *account) sold(seq, units int64, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if seq > a.read && seq > a.safe {
		a.own = added(a.own, lot{seq, units, now})
		a.count()
	}
}

// readTo counts units that the journal says were sold since the last call, up to seq.
func (a *account) readTo(seq, units int64, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read = seq
	if units > 0 && seq > a.safe {
		a.lots = added(a.lots, lot{seq, units, now})
	}
	a.own = above(a.own, seq)
	a.count()
}

// began says that this edge follows the journal from seq on and has not read what is
// before. asked is when it asked for seq: movements above it that were counted by then are
// lost, because another server leads.
func (a *account) began(epoch string, seq int64, asked time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if epoch != a.epoch {
		a.epoch, a.safe, a.lots, a.own = epoch, 0, nil, nil
	}
	a.followed = asked
	a.read, a.safe = seq, min(a.safe, seq)
	a.lots = slices.DeleteFunc(a.lots, func(l lot) bool { return l.seq > seq })
	for len(a.own) > 0 && a.own[0].seq <= seq { // the journal had them before it was followed
		a.lots = added(a.lots, a.own[0])
		a.own = a.own[1:]
	}
	a.own = slices.DeleteFunc(a.own, func(l lot) bool { return l.at < asked })
	a.uncounted = 0
	if seq > a.safe {
		a.uncounted = seq
	}
	a.count()
}

// prove says that all movements up to seq are safe.
func (a *account) prove(epoch string, seq int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(epoch) == len(a.epoch) && epoch < a.epoch {
		return // a proof of an earlier life of the sale: its numbers say nothing about this one
	}
	if epoch != a.epoch { // another life of the sale
		a.epoch, a.safe, a.uncounted, a.lots, a.own = epoch, seq, 0, nil, nil
	}
	if seq < a.safe {
		return // an older proof, or a server that has lost movements: following it says which
	}
	a.safe = seq
	a.lots, a.own = above(a.lots, seq), above(a.own, seq)
	if a.uncounted <= seq {
		a.uncounted = 0
	}
	a.count()
	if a.proved != nil {
		close(a.proved)
		a.proved = nil
	}
}

// lost says that a primary which has its replicas had movements up to seq only, when it was
// asked: later ones that were counted by then are lost, because another server leads.
func (a *account) lost(seq int64, asked time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	late := func(l lot) bool { return l.seq > seq && l.at < asked }
	a.lots, a.own = slices.DeleteFunc(a.lots, late), slices.DeleteFunc(a.own, late)
	a.count()
}

// gone says that Redis does not have the sale, when it was asked: this edge may have begun to follow
// it since.
func (a *account) gone(asked time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.followed > asked {
		return
	}
	a.epoch, a.safe, a.uncounted, a.lots, a.own = "", 0, 0, nil, nil
	a.count()
	a.unknown.Store(false) // there is nothing to sell either
}

// nextProof returns a channel that is closed at the next proof.
func (a *account) nextProof() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proved == nil {
		a.proved = make(chan struct{})
	}
	return a.proved
}

// count publishes the sums. The caller must hold mu.
func (a *account) count() {
	units, oldest := int64(0), int64(0)
	for _, lots := range [...][]lot{a.lots, a.own} {
		for i := range lots {
			units += lots[i].units
		}
		if len(lots) > 0 && (oldest == 0 || int64(lots[0].at) < oldest) {
			oldest = int64(lots[0].at)
		}
	}
	a.units.Store(units)
	a.oldest.Store(oldest)
	a.unknown.Store(a.uncounted > 0 || a.epoch == "")
}

// unsafe reports whether a proof is needed.
func (a *account) unsafe() bool { return a.units.Load() > 0 || a.unknown.Load() }

// room is how many units may be sold now.
func (a *account) room(b Bound, now time.Duration) int64 {
	const unbounded = 1 << 62
	switch {
	case b.Any():
		return unbounded
	case a.unknown.Load():
		return 0
	case b.Units > 0:
		return b.Units - a.units.Load()
	}
	if oldest := a.oldest.Load(); oldest > 0 && now-time.Duration(oldest) > b.Age {
		return 0
	}
	return unbounded
}

// added appends a lot. A lot with an older seq joins the last one.
func added(lots []lot, l lot) []lot {
	if n := len(lots); n > 0 && l.seq <= lots[n-1].seq {
		lots[n-1].units += l.units
		return lots
	}
	if len(lots) >= maxLots {
		half := lots[:0]
		for i := 0; i+1 < len(lots); i += 2 {
			half = append(half, lot{lots[i+1].seq, lots[i].units + lots[i+1].units, lots[i].at})
		}
		lots = half
	}
	return append(lots, l)
}

// above returns the lots above a seq.
func above(lots []lot, seq int64) []lot {
	n := 0
	for n < len(lots) && lots[n].seq <= seq {
		n++
	}
	return slices.Delete(lots, 0, n)
}
