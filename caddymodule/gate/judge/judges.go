package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
)

// Judges has the judges of one configuration, in the order in which they were provisioned.
type Judges struct {
	mu  sync.Mutex
	all []*Judge
}

// judgesKey is the key of an app's judges among its parts.
type judgesKey struct{}

// Of returns the judges of an app's configuration.
func Of(a *app.App) *Judges {
	return a.Part(judgesKey{}, func() app.Part { return new(Judges) }).(*Judges)
}

// Start logs warnings that need the whole configuration.
func (js *Judges) Start(d *edgeruntime.Runtime) {
	all := js.List()
	for _, j := range all {
		j.warnLoaded()
	}
	js.warnLists(d, all)
}

// Stop has nothing to end.
func (js *Judges) Stop() {}

// add adds a judge.
func (js *Judges) add(j *Judge) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.all = append(js.all, j)
	js.nameWaitlists()
}

func (js *Judges) remove(j *Judge) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.all = slices.DeleteFunc(js.all, func(other *Judge) bool { return other == j })
}

// List returns all judges.
func (js *Judges) List() []*Judge {
	js.mu.Lock()
	defer js.mu.Unlock()
	return slices.Clone(js.all)
}

// Find returns the gate with that name; without a name, the only gate.
func (js *Judges) Find(name string) (*Judge, error) {
	all := js.List()
	if len(all) == 0 {
		return nil, errors.New("the configuration has no gate")
	}
	if name == "" {
		if len(all) > 1 {
			return nil, fmt.Errorf("there are %d gates: name one; there are %s", len(all), gateNames(all))
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
		return nil, fmt.Errorf("no gate is named %.80q; there are %s", name, gateNames(all))
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%d gates are named %s: give each a name of its own", len(found), name)
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
