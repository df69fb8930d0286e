package app

import (
	"slices"
	"sync"
)

// running lists the started apps: during a reload there are two, and a failed reload
// removes the newer one again.
var running registry

type registry struct {
	mu   sync.Mutex
	apps []*App
}

func (r *registry) add(a *App) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apps = append(r.apps, a)
}

func (r *registry) remove(a *App) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apps = slices.DeleteFunc(r.apps, func(b *App) bool { return a == b })
}

// Latest returns the app that started last; nil: no app runs.
func Latest() *App {
	running.mu.Lock()
	defer running.mu.Unlock()
	if len(running.apps) == 0 {
		return nil
	}
	return running.apps[len(running.apps)-1]
}
