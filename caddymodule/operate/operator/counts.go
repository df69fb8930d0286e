package operator

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// countSale answers with what all edges have counted of a sale.
func (o *operator) countSale(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	if err := o.known(id); err != nil {
		return nil, err
	}
	all, err := o.runtime.Counts(o.ctx, id)
	if err != nil {
		return nil, err
	}
	return countedOf(id, all), nil
}

func countedOf(id string, all *edgeruntime.SaleCounts) adminapi.SaleCounted {
	c := adminapi.SaleCounted{Sale: id, Attempts: []adminapi.AttemptsCounted{}, Shadow: []adminapi.AttemptsCounted{}, Edges: []adminapi.EdgeCountedSince{},
		Reserves: timesOf(all.Sum.Reserves()), Won: timesOf(all.Sum.Won()), Lost: timesOf(all.Sum.Lost())}
	into := func(list *[]adminapi.AttemptsCounted) func(string, string, int64) {
		return func(outcome, reason string, n int64) {
			*list = append(*list, adminapi.AttemptsCounted{Outcome: outcome, Reason: reason, Attempts: n})
		}
	}
	all.Sum.EachAttempt(into(&c.Attempts))
	all.Sum.EachShadow(into(&c.Shadow))
	for i := range all.Edges {
		e := &all.Edges[i]
		c.Edges = append(c.Edges, adminapi.EdgeCountedSince{Name: e.Name, IDs: append([]string{}, e.IDs...), Live: e.Live, Sells: e.Sells, Silent: e.Silent, Heard: e.Heard.UTC(), PerMinute: e.PerMinute, Attempts: e.Sum.Total()})
	}
	return c
}

func timesOf(h edgeruntime.Histogram) adminapi.TimesCounted {
	t := adminapi.TimesCounted{Count: h.Total()}
	for share, into := range map[float64]**float64{.5: &t.P50, .99: &t.P99} {
		if ms := h.Quantile(edgeruntime.Histogram{}, share); !math.IsNaN(ms) {
			*into = &ms
		}
	}
	return t
}

// counted examines what the edges tell of themselves with their counts: which of those that are heard do not sell.
// Which are silent it says where there is no fence; else the fences know.
func (d *doctor) counted() {
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

func (d *doctor) countedOf(id string, idle, silent map[string]bool) error {
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
