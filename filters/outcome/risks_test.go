package outcome_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/outcome"
)

// A status that decides alone, against what shops mean by it, is warned of; what else an answer needs makes it
// the shop's own.
func TestRisks(t *testing.T) {
	answers := map[string]outcome.AnswerMatcher{
		"late":    {Status: []string{"409", "5xx"}},
		"refused": {Status: []string{"200"}, JSON: []outcome.JSONTest{{Path: "error"}}},
		"exists":  {Status: []string{"409"}, Header: map[string][]string{"Location": nil}},
	}
	for rule, want := range map[string][]string{
		"confirm 2xx":                 nil,
		"confirm 201 303 3xx":         nil,
		"confirm 2xx 4xx 500":         {"confirm 4xx: with the status 4xx shops say that they have not taken", "confirm 500: with the status 500 shops"},
		"confirm @late":               {"confirm @late: with the status 409 shops", "confirm @late: with the status 5xx shops"},
		"confirm @exists @refused":    nil,
		"release 4xx 409 404":         nil,
		"release 503 501 3xx":         nil,
		"release 2xx":                 {"release 2xx: with the status 2xx shops say that they have taken"},
		"release 4xx 5xx 500 502 504": {"release 5xx: after the status 5xx an order may stand", "release 500: after", "release 502: after", "release 504: after"},
		"release @late @refused":      {"release @late: after the status 5xx"},
	} {
		words := strings.Fields(rule)
		got := outcome.Risks([]outcome.Rule{{Outcome: words[0], When: words[1:]}}, answers)
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}
