package operator

import (
	"github.com/stockgate/stockgate/caddymodule/adminapi"
	"github.com/stockgate/stockgate/edge"
	"github.com/stockgate/stockgate/shard"
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

func lines(d *adminapi.Diagnosis) []string {
	all := make([]string, len(d.Findings))
	for i, f := range d.Findings {
		all[i] = f.Level + " " + f.Check + " " + f.Text
	}
	return all
}
