package fastpath

import "sync"

// held are connections that have been answered here and that net/http still considers
// new, or does not know to be idle again: at a shutdown it would wait for them.
type answeredConns struct {
	mu    sync.Mutex
	conns map[*Conn]struct{}
}

func (h *answeredConns) add(c *Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conns == nil {
		h.conns = make(map[*Conn]struct{})
	}
	h.conns[c] = struct{}{}
}

func (h *answeredConns) remove(c *Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
}

// Stopped reports whether Stop was called.
func (s *Server) Stopped() bool { return s.stopped.Load() }

// Stop stops answering for good: from now on net/http gets all requests. Idle
// connections are closed, as net/http closes its own.
func (s *Server) Stop() {
	s.stopped.Store(true)
	s.held.mu.Lock()
	var all []*Conn
	for c := range s.held.conns {
		all = append(all, c)
	}
	s.held.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}
