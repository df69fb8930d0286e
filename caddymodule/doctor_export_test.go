package caddymodule

import "github.com/stockgate/stockgate/reservation"

// JudgeServer says what is right and wrong about a Redis: "level check text" each.
func JudgeServer(s reservation.Server, acks int) []string {
	var d diagnosis
	judgeServer(&d, &s, acks)
	return d.lines()
}

// JudgeEnrolment is JudgeServer of who signs.
func JudgeEnrolment(n reservation.Enrolment) []string {
	var d diagnosis
	judgeEnrolment(&d, n)
	return d.lines()
}

func (d *diagnosis) lines() []string {
	lines := make([]string, len(d.Findings))
	for i, f := range d.Findings {
		lines[i] = f.Level + " " + f.Check + " " + f.Text
	}
	return lines
}
