package doctor

import (
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/edge/risk"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// JudgeServer returns the findings about a Redis, each as "level check text".
func JudgeServer(s shard.Server, acks int) []string {
	var d adminapi.Diagnosis
	judgeServer(&d, &s, acks)
	return lines(&d)
}

// JudgeEnrolment returns the findings about the edges' signing keys, as JudgeServer does.
func JudgeEnrolment(n edge.Enrolment) []string {
	var d adminapi.Diagnosis
	judgeEnrolment(&d, n)
	return lines(&d)
}

// JudgePrimary returns the findings about a server that takes writes, as JudgeServer does.
func JudgePrimary(p shard.Primary, o shard.Options, now time.Time) []string {
	var d adminapi.Diagnosis
	judgePrimary(&d, &p, &o, now)
	return lines(&d)
}

// JudgeStore returns the findings about a store's server and disk, as JudgeServer does.
func JudgeStore(s edgeruntime.StoreStatus) []string {
	var d adminapi.Diagnosis
	judgeStore(&d, &s)
	judgeDisk(&d, &s)
	return lines(&d)
}

// JudgeRisk returns the finding about what is at risk of a sale.
func JudgeRisk(s risk.State) string {
	var d adminapi.Diagnosis
	judgeRisk(&d, "s", s, "50")
	return lines(&d)[0]
}

func lines(d *adminapi.Diagnosis) []string {
	all := make([]string, len(d.Findings))
	for i, f := range d.Findings {
		all[i] = f.Level + " " + f.Check + " " + f.Text
	}
	return all
}
