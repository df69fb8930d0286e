package line

import "sync"

// maxMisses bounds the orders whose misses are counted. Beyond it counting begins again.
const maxMisses = 10_000

// misses counts how often orders did not reach their gate at this edge. The zero value is ready.
type misses struct {
	mu   sync.Mutex
	byID map[string]int64
}

// add counts one more, and returns how many there are.
func (m *misses) add(id string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byID == nil || len(m.byID) >= maxMisses {
		m.byID = make(map[string]int64)
	}
	m.byID[id]++
	return m.byID[id]
}

// forget is called when an order has reached its gate, or is released.
func (m *misses) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byID, id)
}
