package sales

import (
	"math"
	"net/http"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
)

// countSale answers with what all edges have counted of a sale.
func countSale(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	if err := o.Known(id); err != nil {
		return nil, err
	}
	all, err := o.Runtime.Counts(o.Ctx, id)
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
