package doctor

import (
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// overdueFor is how long after its time an act that is to come is a finding.
const overdueFor = 10 * time.Second

// judgeSchedule adds the findings about the acts of a sale. now is its Redis's time.
func judgeSchedule(d *adminapi.Diagnosis, b *reservation.SaleStock, now time.Time) {
	if b.Status == sale.Closed {
		return // whatever failed, nothing is sold any more
	}
	for i := range b.Performed {
		if a := &b.Performed[i]; a.Failed {
			d.Add(adminapi.LevelError, "schedule", "act %[2]d of %[1]s, %[3]s at %[4]s, has failed: %[5]s. Do it yourself if it is still to be done, then 'caddy stockgate sale schedule cancel %[1]s %[2]d' ends this alarm",
				b.ID, a.Number, a.What(), adminapi.SaleTime(a.At, b.Timezone), a.Detail)
		}
	}
	for i := range b.Scheduled {
		a := &b.Scheduled[i]
		switch at := adminapi.SaleTime(a.At, b.Timezone); {
		case a.Stale:
			d.Add(adminapi.LevelWarning, "schedule", "act %[2]d of %[1]s, %[3]s at %[4]s, is not going to be done: redis comes from a backup, or the sale was rebuilt, since it was planned. "+
				"Take it back with 'caddy stockgate sale schedule cancel %[1]s %[2]d', and plan it again if it is still to be done", b.ID, a.Number, a.What(), at)
		case now.Sub(a.At) > overdueFor:
			d.Add(adminapi.LevelError, "schedule", "act %d of %s, %s, is due since %s, and no edge has done it: see what the log says, and that an edge runs which may sell", a.Number, b.ID, a.What(), at)
		}
	}
}
