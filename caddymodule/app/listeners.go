package app

import (
	"maps"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// listener is a listener wrapper that answers for gates.
type listener interface {
	// StopAnswering leaves all later requests to the HTTP server.
	StopAnswering()
}

// listeners are the servers of one configuration that have the wrapper.
type listeners struct {
	mu  sync.Mutex
	all map[*caddyhttp.Server]listener
}

// AddListener registers a server's wrapper. It returns false if the server already has one.
func (a *App) AddListener(s *caddyhttp.Server, l listener) bool {
	f := &a.fast
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = make(map[*caddyhttp.Server]listener)
	}
	_, twice := f.all[s]
	f.all[s] = l
	return !twice
}

// HasListener reports whether a server has the wrapper.
func (a *App) HasListener(s *caddyhttp.Server) bool {
	a.fast.mu.Lock()
	defer a.fast.mu.Unlock()
	return a.fast.all[s] != nil
}

// Listeners returns the wrappers by server.
func (a *App) Listeners() map[*caddyhttp.Server]listener {
	a.fast.mu.Lock()
	defer a.fast.mu.Unlock()
	return maps.Clone(a.fast.all)
}

// stop ends fast answers: a newer configuration may decide otherwise, and the gates of this
// one are about to release what they use.
func (f *listeners) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.all {
		l.StopAnswering()
	}
}
