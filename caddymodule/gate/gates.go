package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/probe"
)

// Gates are those of one configuration, in the order in which they were provisioned.
type Gates struct {
	mu      sync.Mutex
	all     []*Gate
	probers probe.Probers
	leave   []func() // each ends what Start has begun for a queue
}

// gatesKey is the key of an app's gates among its parts.
type gatesKey struct{}

// Of returns the gates of an app's configuration.
func Of(a *app.App) *Gates {
	return a.Part(gatesKey{}, func() app.Part { return new(Gates) }).(*Gates)
}

// Start starts a prober for each gate that probes. Gates with the same name have the same
// probe, and so the same holds.
func (gs *Gates) Start(d *edgeruntime.Runtime) {
	started := make(map[string]bool)
	for _, g := range gs.List() {
		g.warnLoaded()
		if g.Queue != nil {
			s := &sender{g, d}
			gs.leave = append(gs.leave, d.Queue().Serve(g.orderPrint(), s), d.Queue().Serve(g.prints.config, s))
		}
		if g.probe != nil && !started[g.Name] {
			started[g.Name] = true
			gs.probers.Start(g.probe, d)
		}
	}
}

// Stop ends the probers, and sends no orders any more whose requests are not open.
func (gs *Gates) Stop() {
	gs.probers.Close()
	for _, leave := range gs.leave {
		leave()
	}
}

// add adds a gate, and warns if its orders wait in the line of another one. A hold has the name of its
// gate, whose probe asks about it: two gates that probe differently need different names.
func (gs *Gates) add(g *Gate) error {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for _, other := range gs.all {
		if g.Check || other.Check || other.Name != g.Name || other.InDoubt.Fingerprint(other.Answers) == g.InDoubt.Fingerprint(g.Answers) {
			continue
		}
		if g.Name == "" {
			return errors.New("in_doubt: two gates without a name differ in it, and their holds could not be told apart: name them, as in `stockgate @order main { … }`")
		}
		return fmt.Errorf("in_doubt: two gates named %s differ in it, and their holds could not be told apart: give each a name of its own", g.Name)
	}
	if slices.ContainsFunc(gs.all, func(other *Gate) bool { return g.prints.differsFrom(&other.prints) }) {
		g.sharesQueue = sharedQueue
		g.log.Warn(g.Title() + " " + sharedQueue)
	}
	gs.all = append(gs.all, g)
	return nil
}

func (gs *Gates) remove(g *Gate) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.all = slices.DeleteFunc(gs.all, func(other *Gate) bool { return other == g })
}

// List returns all gates.
func (gs *Gates) List() []*Gate {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return slices.Clone(gs.all)
}

// Find returns the gate with that name; without a name, the only gate.
func (gs *Gates) Find(name string) (*Gate, error) {
	all := gs.List()
	if len(all) == 0 {
		return nil, request.Bad("the configuration has no gate")
	}
	if name == "" {
		if len(all) > 1 {
			return nil, request.Bad("there are %d gates: name one; there are %s", len(all), gateNames(all))
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
		return nil, request.Bad("no gate is named %.80q; there are %s", name, gateNames(all))
	case 1:
		return found[0], nil
	}
	return nil, request.Bad("%d gates are named %s: give each a name of its own", len(found), name)
}

// gateNames lists the names of gates, for an error.
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
