package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// counted examines what the edges tell of themselves with their counts: which of those that are heard do not sell.
// Which are silent it says where there is no fence; else the fences know.
func (d *examination) counted() {
	idle, silent := make(map[string]bool), make(map[string]bool)
	for l := range d.runtime.Catalogue().All {
		if !l.IsLive() {
			continue
		}
		if err := d.countedOf(l.Sale.ID, idle, silent); err != nil {
			d.Add(adminapi.LevelWarning, "edges", "the counts of the edges of %s cannot be read: %v", l.Sale.ID, err)
		}
	}
	if len(idle) > 0 {
		d.Add(adminapi.LevelWarning, "edges", "edges that are heard do not sell, their gates answer 503: %s. Run 'caddy stockgate doctor' there", someOf(idle))
	}
	if len(silent) > 0 {
		d.Add(adminapi.LevelWarning, "edges", "edges that were not stopped are not heard any more: %s. See that their machines and Caddy run, and that they reach redis. "+
			"Another edge of the same machine ends this warning, and so does the end of the sale", someOf(silent))
	}
	if full := d.runtime.Uncounted(); len(full) > 0 {
		d.Add(adminapi.LevelWarning, "edges", "the sums over all edges lack what this edge counts of %s: too many edges count there. See how many run", strings.Join(full, ", "))
	}
}

func (d *examination) countedOf(id string, idle, silent map[string]bool) error {
	ctx, cancel := d.call()
	defer cancel()
	all, err := d.runtime.LastCounts(ctx, id)
	if err != nil {
		return err
	}
	for i := range all.Edges {
		e := &all.Edges[i]
		switch {
		case e.Live > 0 && !e.Sells && !slices.Contains(e.IDs, d.runtime.Leases().ID()): // of itself it says more
			idle[e.Name] = true
		case e.Silent && d.runtime.Client().Options.NoFence:
			silent[e.Name+", since "+adminapi.LocalTime(e.Heard)] = true
		}
	}
	return nil
}

// someOf lists some of the names in a set.
func someOf(set map[string]bool) string {
	names := slices.Sorted(maps.Keys(set))
	if more := len(names) - namedEdges; more > 0 {
		names = append(names[:namedEdges], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, "; ")
}
