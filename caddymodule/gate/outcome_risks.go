package gate

import (
	"maps"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/filters/outcome"
)

// SellingRisks returns the risks of the options that only a gate has.
func (g *Gate) SellingRisks() (risks []judge.OptionRisk) {
	for _, text := range append(g.shapedAnswers(), g.outcomeRisks()...) {
		risks = append(risks, judge.OptionRisk{About: "outcome", Text: text})
	}
	for _, text := range g.otherCarts() {
		risks = append(risks, judge.OptionRisk{About: "lookup", Text: text})
	}
	return risks
}

// shapedAnswers warn about a rule that reads what a client can shape: it may rename every field below data,
// and so make the answer to one field look like the answer to another.
func (g *Gate) shapedAnswers() (risks []string) {
	if len(g.GraphQL) == 0 || g.Ask != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.Answers)) {
		tests := g.Answers[name].JSON
		if at := slices.IndexFunc(tests, func(t outcome.JSONTest) bool { return t.Path == "data" || strings.HasPrefix(t.Path, "data.") }); at >= 0 {
			risks = append(risks, "@"+name+" reads "+tests[at].Path+" in the answer of a GraphQL server, where the client chooses the names of fields and can make a sold order look released: "+
				"ask the shop with `outcome ask`, let it confirm with `outcome backend`, or read only errors")
		}
	}
	return risks
}

// outcomeRisks returns warnings about rules that probably take an answer of the shop for its contrary.
func (g *Gate) outcomeRisks() []string {
	risks := outcome.Risks(g.Rules, g.Answers)
	if g.Lookup != nil && (g.Outcome == "" || g.Outcome == "response") {
		risks = append(risks, responseToCart)
	}
	if g.Ask != nil && g.Ask.ByAnswer() && (g.InDoubt == nil || g.InDoubt.Probe == "") {
		risks = append(risks, unnamedOrder)
	}
	if g.InDoubt != nil {
		for _, risk := range outcome.Risks(g.InDoubt.Rules, g.Answers) {
			risks = append(risks, "in_doubt probe: "+risk)
		}
	}
	return risks
}
