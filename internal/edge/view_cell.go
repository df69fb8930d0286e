package edge

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

const (
	// rememberFor is how long a refusal is repeated before one attempt asks Redis again,
	// give or take a tenth, so that not all edges ask at once. The journal shows every unit
	// that comes back; this finds a unit in case that fails.
	rememberFor = 5 * time.Second
	// askEvery is the pause between such questions about one sale: a crowd that wants
	// 10,000 sold-out items must not ask for each of them all the time.
	askEvery = 20 * time.Millisecond
	// askFor is how long one attempt may look for an answer before another one does.
	askFor = 2 * time.Second
)

// cell is what the view knows of one stock cell. The journal reader and the goroutines
// that reserve write it concurrently; any goroutine may read it.
type cell struct {
	credit atomic.Int64 // seq of the last entry that gave units back (or a later one), or where following began
	sold   atomic.Int64 // seq of the last entry that took units for good
	memory atomic.Pointer[memory]
}

// memory is what a reply has said of a cell that had fewer units than an attempt wanted.
type memory struct {
	seq       int64         // of the shard when it was so
	available int64         // units then; no more have come since
	left      atomic.Int64  // units that were available or may come back; fewer since
	late      atomic.Bool   // units were sold between seq and when it was known: left may be less
	until     time.Duration // then one attempt may ask
	asking    atomic.Int64  // until when one does
	// soldOut and allHeld are the refusals, made once
	soldOut, allHeld sale.Refusal
}

// due reports whether one attempt should check the memory in Redis.
func (m *memory) due(now time.Duration) bool {
	return now >= max(m.until, time.Duration(m.asking.Load()))
}

// ask acquires the right to check the memory, for askFor.
func (m *memory) ask(now time.Duration) bool {
	before := m.asking.Load()
	return now >= time.Duration(before) && m.asking.CompareAndSwap(before, int64(now+askFor))
}

// refusal returns Redis's refusal of so many units; nil: Redis may answer otherwise.
func (m *memory) refusal(units int64) *sale.Refusal {
	switch {
	case units <= m.available:
		return nil
	case units > m.left.Load():
		return &m.soldOut
	case m.late.Load():
		return nil
	}
	return &m.allHeld
}

// learn remembers what a refusal has said at a seq of the shard, unless the journal has
// shown units that came back since, or the cell has a newer memory.
func (c *cell) learn(seq, available, left int64, sku string, now time.Duration) {
	m := &memory{
		seq: seq, available: available, until: now + rememberFor*9/10 + rand.N(rememberFor/5),
		soldOut: sale.Refusal{Reason: sale.SoldOut, SKU: sku}, allHeld: sale.Refusal{Reason: sale.AllHeld, SKU: sku},
	}
	m.left.Store(left)
	for {
		old := c.memory.Load()
		if seq < c.credit.Load() || old != nil && seq < old.seq && now < old.until {
			return
		}
		if c.memory.CompareAndSwap(old, m) {
			break
		}
	}
	// the journal reader stores the seq first and then looks for a memory, this goroutine does
	// the reverse: one of the two sees the other
	if c.credit.Load() > seq {
		c.memory.CompareAndSwap(m, nil)
	}
	if c.sold.Load() > seq {
		m.late.Store(true)
	}
}

// gone takes units off what is left: an entry of the journal has sold them, or taken them
// out of stock.
func (c *cell) gone(seq, units int64) {
	c.sold.Store(seq)
	if m := c.memory.Load(); m != nil && m.seq < seq {
		m.left.Add(-units)
	}
}

// credited drops the memory: the journal's entry of this number, or one before it, has
// given units back.
func (c *cell) credited(seq int64) {
	for old := c.credit.Load(); old < seq && !c.credit.CompareAndSwap(old, seq); old = c.credit.Load() {
	}
	c.forget(seq - 1)
}

// forget drops what was so at seq or before.
func (c *cell) forget(seq int64) {
	if m := c.memory.Load(); m != nil && m.seq <= seq {
		c.memory.CompareAndSwap(m, nil)
	}
}

// Refused remembers that a line was refused because its units were not there. f must be
// the view from before the attempt was sent; it may be nil.
func (f *followed) Refused(line *sale.Line, seq, available, left int64) {
	if f == nil {
		return
	}
	if c := f.cellOf(line); c != nil {
		c.learn(seq, available, left, line.SKU, f.now())
	}
}

// Got drops the memory of cells that had the units after all.
func (f *followed) Got(lines []sale.Line, seq int64) {
	if f == nil {
		return
	}
	for i := range lines {
		c := f.cellOf(&lines[i])
		if c == nil {
			continue
		}
		if m := c.memory.Load(); m != nil && m.available < lines[i].Quantity {
			c.forget(seq - 1) // a memory of the same seq is newer than this hold
		}
	}
}
