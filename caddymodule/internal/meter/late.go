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
