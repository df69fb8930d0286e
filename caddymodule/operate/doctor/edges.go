package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge/fence"
)

// silentEdges adds a finding if edges are not heard any more that were not stopped.
func (d *examination) silentEdges() {
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
