package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/option/probe"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
)

// Gates are those of one configuration, with the stockgate_checks, in the order in which they were
// provisioned.
type Gates struct {
	mu      sync.Mutex
	all     []*Judge
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
	all := gs.List()
	for _, j := range all {
		j.warnLoaded(all)
	}
	gs.warnLists(d, all)
	for _, g := range gs.Selling() {
		if g.Queue != nil {
			s := &sender{Gate: g, runtime: d}
			gs.leave = append(gs.leave, d.Queue().Serve(g.orderPrint(), s), d.Queue().Serve(g.prints.config, s))
			if g.prints.reads != "" {
				gs.leave = append(gs.leave, d.Queue().Serve(g.prints.reads, s))
			}
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

// add adds a judge. It warns if orders of its gate wait in the line of another one. A hold has the name of its
// gate, whose probe asks about it: two gates that probe differently need different names.
func (gs *Gates) add(j *Judge) error {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if j.gate != nil {
		if err := gs.compare(j.gate); err != nil {
			return err
		}
	}
	gs.all = append(gs.all, j)
	gs.nameWaitlists()
	return nil
}

// compare compares a gate with those that sell beside it.
func (gs *Gates) compare(g *Gate) error {
	for _, judge := range gs.all {
		other := judge.gate
		if other == nil || other.Name != g.Name || other.InDoubt.Fingerprint(other.Answers) == g.InDoubt.Fingerprint(g.Answers) {
			continue
		}
		if g.Name == "" {
			return errors.New("in_doubt: two gates without a name differ in it, and their holds could not be told apart: name them, as in `stockgate @order main { … }`")
		}
		return fmt.Errorf("in_doubt: two gates named %s differ in it, and their holds could not be told apart: give each a name of its own", g.Name)
	}
	if slices.ContainsFunc(gs.all, func(other *Judge) bool { return other.gate != nil && g.prints.differsFrom(&other.gate.prints) }) {
		g.sharesQueue = sharedQueue
		g.log.Warn(g.Title() + " " + sharedQueue)
	}
	return nil
}

func (gs *Gates) remove(j *Judge) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.all = slices.DeleteFunc(gs.all, func(other *Judge) bool { return other == j })
}

// List returns the judges of all gates and stockgate_checks.
func (gs *Gates) List() []*Judge {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return slices.Clone(gs.all)
}

// Selling returns the gates that hold stock, without the stockgate_checks.
func (gs *Gates) Selling() (gates []*Gate) {
	for _, j := range gs.List() {
		if j.gate != nil {
			gates = append(gates, j.gate)
		}
	}
	return gates
}

// Probes returns the probes of the gates that have one, by the name of the gate.
func (gs *Gates) Probes() map[string]*probe.Probe {
	probes := make(map[string]*probe.Probe)
	for _, g := range gs.Selling() {
		if g.probe != nil {
			probes[g.Name] = g.probe
		}
	}
	return probes
}

// Find returns the gate with that name; without a name, the only gate.
func (gs *Gates) Find(name string) (*Judge, error) {
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
	var found []*Judge
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
func gateNames(all []*Judge) string {
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
