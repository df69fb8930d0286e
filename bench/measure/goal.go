package measure

import (
	"fmt"
	"math"
)

// Goal is what a measured ratio should be.
type Goal struct {
	What string  // "gate against caddy-respond, requests per second"
	Want float64 // the bound
	Most bool    // Want is the most that is good, else the least
}

// Judged is a goal with the measured value.
type Judged struct {
	Case string  `json:"case"`
	What string  `json:"what"`
	Goal string  `json:"goal"`
	Got  float64 `json:"got"`
	// ByCPU is the same for processor time instead of answers per second, where that is
	// another thing: it does not depend on what else the machine does.
	ByCPU float64 `json:"by_cpu,omitempty"`
	// Busy is how much of its core the less busy one of the two used, where answers per
	// second are compared.
	Busy float64 `json:"busy,omitempty"`
	Met  bool    `json:"met"`
}

// Judge compares; a NaN (something was not measured) gives false for ok.
func (g Goal) Judge(name string, got float64) (judged Judged, ok bool) {
	if math.IsNaN(got) {
		return Judged{}, false
	}
	word, met := "at least", got >= g.Want
	if g.Most {
		word, met = "at most", got <= g.Want
	}
	return Judged{Case: name, What: g.What, Goal: fmt.Sprintf("%s %.2f", word, g.Want), Got: got, Met: met}, true
}

// AtItsLimit is the least share of its core that a server at its limit uses.
const AtItsLimit = 0.9

// Verdict is met or MISSED, and whether answers per second are meaningful: a server
// that was not at its limit was slowed down by something else.
func (j Judged) Verdict() string {
	verdict := "MISSED"
	if j.Met {
		verdict = "met"
	}
	if j.Busy > 0 && j.Busy < AtItsLimit {
		verdict += fmt.Sprintf(", but busy %.2f", j.Busy)
	}
	return verdict
}
