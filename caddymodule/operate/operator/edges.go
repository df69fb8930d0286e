package operator

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge/fence"
)

// silentEdges adds a finding if edges are not heard any more that were not stopped.
func (d *doctor) silentEdges() {
	silent := d.runtime.Silent()
	if len(silent) == 0 {
		return
	}
	d.Add(adminapi.LevelWarning, "edges", "edges that were not stopped are not heard any more: %s. See that their machines and Caddy run, and that they reach redis. "+
		"Of one that does not come back, 'caddy stockgate edge forget %s' ends this warning", nameSilent(silent), silent[0].ID)
}

// nameSilent names edges and says since when they are not heard.
func nameSilent(silent []fence.SilentEdge) string {
	var names []string
	for _, s := range silent[:min(len(silent), namedEdges)] {
		names = append(names, fmt.Sprintf("%s for %v, since %s (%s)", s.ID, s.For.Round(time.Second), adminapi.LocalTime(s.Heard), strings.Join(s.Sales, ", ")))
	}
	if more := len(silent) - namedEdges; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, "; ")
}

// forgetEdge ends the warning about an edge that does not come back.
func (o *operator) forgetEdge(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.Word("the edge", r.PathValue("edge"))
	if err != nil {
		return nil, err
	}
	silent, err := o.runtime.Leases().Forget(o.ctx, id)
	if !silent && err == nil {
		return adminapi.EdgeForgotten{ID: id}, nil
	}
	return adminapi.EdgeForgotten{ID: id, WasSilent: silent}, o.noted(err, "silent edge forgotten", zap.String("edge", id))
}
