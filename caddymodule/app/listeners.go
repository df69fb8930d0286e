package app

import (
	"maps"
	"sync"
)

// listener is a listener wrapper that answers for gates.
type listener interface {
	// StopAnswering leaves all later requests to the HTTP server.
	StopAnswering()
	// Addresses are those at which the server listens.
	Addresses() []string
}

// listeners are the wrappers of one configuration, by the name of their server.
type listeners struct {
	mu  sync.Mutex
	all map[string]listener
}

// AddListener registers a server's wrapper. It returns false if the server already has one.
func (a *App) AddListener(server string, l listener) bool {
	f := &a.fast
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = make(map[string]listener)
	}
	_, twice := f.all[server]
	f.all[server] = l
	return !twice
}

// HasListener reports whether a server has the wrapper.
func (a *App) HasListener(server string) bool {
	a.fast.mu.Lock()
	defer a.fast.mu.Unlock()
	return a.fast.all[server] != nil
}

// Listeners returns the wrappers by the name of their server.
func (a *App) Listeners() map[string]listener {
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
