package meter

import (
	"maps"
	"slices"
	"sync"
)

// late has the sales of which a follower of the journal is behind.
type late struct {
	mu    sync.Mutex
	sales map[string]bool
	why   map[string]string // what keeps a follower from getting on, as far as this edge knows
}

func (l *late) note(sale string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.why, sale)
		return
	}
	if l.why == nil {
		l.why = make(map[string]string)
	}
	l.why[sale] = err.Error()
}

func (l *late) set(sale string, behind bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !behind {
		delete(l.sales, sale)
		return
	}
	if l.sales == nil {
		l.sales = make(map[string]bool)
	}
	l.sales[sale] = true
}

func (l *late) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.sales))
}

var lateLedger, lateOutbox late

// LateLedger and LateOutbox return the sales of whose journal the ledger, or the outbox's
// receiver, lacks so much that operators should know.
func LateLedger() []string { return lateLedger.list() }
func LateOutbox() []string { return lateOutbox.list() }

func (l *late) trouble(sale string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why[sale]
}

// OutboxTrouble is what keeps this edge's outbox from getting on with a sale; empty: nothing does, or
// another edge sends it.
func OutboxTrouble(sale string) string { return lateOutbox.trouble(sale) }

// LedgerTrouble is why this edge's ledger can never get what it lacks of a sale; empty: it can, or lacks
// nothing.
func LedgerTrouble(sale string) string { return lateLedger.trouble(sale) }
