package caddymodule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// gates are those of one configuration, in the order in which they were made.
type gates struct {
	mu      sync.Mutex
	all     []*Gate
	probers probers
}

// gatesKey is under which an app has its gates.
type gatesKey struct{}

// gatesOf are the gates of an app's configuration.
func gatesOf(app *App) *gates {
	return app.Part(gatesKey{}, func() Part { return new(gates) }).(*gates)
}

// Start starts a prober for each gate that probes. Gates with the same name have the same
// probe, and so the same holds.
func (gs *gates) Start(d *desk) {
	started := make(map[string]bool)
	for _, g := range gs.list() {
		if g.probe != nil && !started[g.Name] {
			started[g.Name] = true
			gs.probers.start(g.probe, d)
		}
	}
}

// Stop ends the probers.
func (gs *gates) Stop() { gs.probers.close() }

// add takes a gate in. Holds name their gate, so that its probe asks about them: two
// gates that would do that differently need different names.
func (gs *gates) add(g *Gate) error {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for _, other := range gs.all {
		if g.Check || other.Check || other.Name != g.Name || other.InDoubt.fingerprint(other.Answers) == g.InDoubt.fingerprint(g.Answers) {
			continue
		}
		if g.Name == "" {
			return errors.New("in_doubt: two gates without a name differ in it, and nobody could tell their holds apart: name them, as in `stockgate @order main { … }`")
		}
		return fmt.Errorf("in_doubt: two gates named %s differ in it, and nobody could tell their holds apart: give each a name of its own", g.Name)
	}
	gs.all = append(gs.all, g)
	return nil
}

func (gs *gates) remove(g *Gate) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.all = slices.DeleteFunc(gs.all, func(other *Gate) bool { return other == g })
}

func (gs *gates) list() []*Gate {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return slices.Clone(gs.all)
}

// find returns the gate with that name; without a name the only one there is.
func (gs *gates) find(name string) (*Gate, error) {
	all := gs.list()
	if len(all) == 0 {
		return nil, badInput("the configuration has no gate")
	}
	if name == "" {
		if len(all) > 1 {
			return nil, badInput("there are %d gates: name one; there are %s", len(all), gateNames(all))
		}
		return all[0], nil
	}
	var found []*Gate
	for _, g := range all {
		if g.Name == name {
			found = append(found, g)
		}
	}
	switch len(found) {
	case 0:
		return nil, badInput("no gate is named %.80q; there are %s", name, gateNames(all))
	case 1:
		return found[0], nil
	}
	return nil, badInput("%d gates are named %s: give each a name of its own", len(found), name)
}

// gateNames lists the names of gates for a person.
func gateNames(all []*Gate) string {
	var names []string
	unnamed := 0
	for _, g := range all {
		if g.Name == "" {
			unnamed++
		} else if !slices.Contains(names, g.Name) {
			names = append(names, g.Name)
		}
	}
	if unnamed > 0 {
		names = append(names, fmt.Sprintf("%d without a name", unnamed))
	}
	return strings.Join(names, ", ")
}
