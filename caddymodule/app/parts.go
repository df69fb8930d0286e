package app

import (
	"sync"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
)

// Part belongs to an app and is made by a package above it, such as the gates of the
// configuration.
type Part interface {
	// Start is called when the app has started.
	Start(d *edgeruntime.Runtime)
	// Stop is called when the app stops, and again when it is cleaned up.
	Stop()
}

// A partOfSales is a Part that may find that the configuration does not go with the sales that there are.
type partOfSales interface {
	CheckSales(d *edgeruntime.Runtime) error
}

// parts are those of one configuration, by key.
type parts struct {
	mu    sync.Mutex
	order []Part
	byKey map[any]Part
}

// Part returns the part with a key. The first call creates it.
func (a *App) Part(key any, create func() Part) Part {
	ps := &a.parts
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p, ok := ps.byKey[key]; ok {
		return p
	}
	if ps.byKey == nil {
		ps.byKey = make(map[any]Part)
	}
	p := create()
	ps.byKey[key], ps.order = p, append(ps.order, p)
	return p
}

// checkSales is called before start, once the edge knows the sales, if Redis has answered.
func (ps *parts) checkSales(d *edgeruntime.Runtime) error {
	for _, p := range ps.all() {
		if of, ok := p.(partOfSales); ok {
			if err := of.CheckSales(d); err != nil {
				return err
			}
		}
	}
	return nil
}

func (ps *parts) start(d *edgeruntime.Runtime) {
	for _, p := range ps.all() {
		p.Start(d)
	}
}

func (ps *parts) stop() {
	for _, p := range ps.all() {
		p.Stop()
	}
}

func (ps *parts) all() []Part {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.order[:len(ps.order):len(ps.order)]
}
