package gate

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/line"
	"github.com/stockgate/stockgate/caddymodule/gate/option/probe"
)

// Gates has the gates of one configuration, in the order in which they were provisioned.
type Gates struct {
	mu      sync.Mutex
	all     []*Gate
	probers probe.Probers
	leave   []func() // each ends what Start has begun for a gate
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
		if risk := g.cartRisk(judge.Of(g.App).List()); risk != "" {
			g.Log().Warn(risk)
		}
		gs.leave = append(gs.leave, g.taker.ServeLine(d))
		if g.terms.Probe != nil && !started[g.Name] {
			started[g.Name] = true
			gs.probers.Start(g.terms.Probe, d)
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

// Add adds a gate. It warns if orders of the gate wait in the line of another one. A hold has the name of its
// gate, whose probe asks about it: two gates that probe differently need different names.
func (gs *Gates) Add(g *Gate) error {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for _, other := range gs.all {
		if other.Name != g.Name || other.InDoubt.Fingerprint(other.Answers) == g.InDoubt.Fingerprint(g.Answers) {
			continue
		}
		if g.Name == "" {
			return errors.New("in_doubt: two gates without a name differ in it, and their holds could not be told apart: name them, as in `stockgate @order main { … }`")
		}
		return fmt.Errorf("in_doubt: two gates named %s differ in it, and their holds could not be told apart: give each a name of its own", g.Name)
	}
	if slices.ContainsFunc(gs.all, func(other *Gate) bool { return g.taker.Differs(&other.taker.Usher) }) {
		g.sharesQueue = true
		g.Log().Warn(g.Title() + " " + line.SharedQueue)
	}
	gs.all = append(gs.all, g)
	return nil
}

func (gs *Gates) remove(g *Gate) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.all = slices.DeleteFunc(gs.all, func(other *Gate) bool { return other == g })
}

// List returns the gates.
func (gs *Gates) List() []*Gate {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return slices.Clone(gs.all)
}
