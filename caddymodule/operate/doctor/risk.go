package doctor

import (
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge/risk"
)

// atRiskFor is how long units may be at risk before it is worth a warning: a replica that
// keeps up has them within a heartbeat.
const atRiskFor = 2 * time.Second

// judgeRisk adds the finding about what a failover would lose of a sale. bound is at_risk.
func judgeRisk(d *adminapi.Diagnosis, sale string, s risk.State, bound string) {
	age := s.Age.Round(100 * time.Millisecond)
	switch {
	case s.Err != nil:
		d.Add(adminapi.LevelWarning, "at_risk", "what a failover would lose of %s is not known: %v", sale, s.Err)
	case s.Stopped:
		d.Add(adminapi.LevelError, "at_risk", "this edge sells no more of %s: %d units are at risk, the oldest for %v, and at_risk is %s; see that every replica is connected and keeps up, then it goes on by itself",
			sale, s.Units, age, bound)
	case s.Age > atRiskFor:
		d.Add(adminapi.LevelWarning, "at_risk", "%d units of %s are at risk, the oldest for %v: a failover would lose them, and sell them again; see that every replica is connected and keeps up. "+
			"One that was taken away for good counts for ten minutes", s.Units, sale, age)
	default:
		d.Add(adminapi.LevelOK, "at_risk", "units of %s that a failover would lose now: %d", sale, s.Units)
	}
}
