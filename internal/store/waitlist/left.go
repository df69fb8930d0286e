package waitlist

import (
	"context"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// left are the units of a sale that are free, offered, held or in doubt, as far as the journal was applied: while a
// cell has one, some may still come back.
type left struct {
	at    int64            // seq of the shard when they were read: earlier movements are in them
	cells map[string]int64 // nil: they are not known
}

// LoadLeft reads from Redis how many units of each cell are left. False: the sale changed meanwhile, and the caller tries again.
func (l *List) LoadLeft(ctx context.Context, d shard.Data) (bool, error) {
	texts, seq, ok, err := d.Cells(ctx)
	if err != nil || !ok {
		return false, err
	}
	cells := make(map[string]int64, len(texts))
	for name, text := range texts {
		c, err := record.ParseCell(text)
		if err != nil {
			continue // another client has damaged it
		}
		cells[name] = c.Stock - c.Confirmed
	}
	l.mu.Lock()
	l.left = left{at: seq, cells: cells}
	l.mu.Unlock()
	return true, nil
}

// KnowsLeft reports whether LoadLeft has read the units, and ForgetLeft was not called since.
func (l *List) KnowsLeft() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.left.cells != nil
}

// ForgetLeft drops what is known of units, after a movement that does not say what it has changed.
func (l *List) ForgetLeft() {
	l.mu.Lock()
	l.left = left{}
	l.mu.Unlock()
}

// MoveLeft brings the units of a cell to what the movement with a number says. It returns how many there were and are.
func (l *List) MoveLeft(number int64, cell string, units int64) (before, after int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before = l.left.cells[cell]
	if l.left.cells == nil || number <= l.left.at {
		return before, before
	}
	l.left.cells[cell] = before + units
	return before, before + units
}
