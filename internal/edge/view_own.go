package edge

import (
	"sync"

	"github.com/stockgate/stockgate/internal/sale"
)

// maxOwnHolds bounds the holds whose lines an edge remembers. For the others it learns
// from the journal, some milliseconds later, that their units are back.
const maxOwnHolds = 10_000

// ownHolds are the lines of the holds that this edge has made and not settled. What it
// releases itself is back on sale for its next buyer before the journal has it. The zero
// value is ready.
type ownHolds struct {
	mu    sync.Mutex
	lines map[string][]sale.Line // by reservation id
}

func (o *ownHolds) add(id string, lines []sale.Line) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lines == nil {
		o.lines = make(map[string][]sale.Line)
	}
	if len(o.lines) < maxOwnHolds {
		o.lines[id] = lines
	}
}

func (o *ownHolds) take(id string) []sale.Line {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := o.lines[id]
	delete(o.lines, id)
	return lines
}

// gaveBack drops the memories of lines that Redis has put back on sale.
func (e *Edge) gaveBack(saleID string, lines []sale.Line) {
	l, ok := e.Catalogue().Sale(saleID)
	if !ok {
		return
	}
	f := l.view()
	if f == nil {
		return
	}
	seq := e.shard.Seq(saleID) // at least that of the entry
	for i := range lines {
		if c := f.cellOf(&lines[i]); c != nil {
			c.credited(seq)
		}
	}
}
