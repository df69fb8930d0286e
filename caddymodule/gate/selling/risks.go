package selling

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/outcome"
)

// SellingRisks returns the risks of the options that only a gate has.
func (t *Terms) SellingRisks() (risks []option.OptionRisk) {
	for _, text := range append(t.shapedAnswers(), t.outcomeRisks()...) {
		risks = append(risks, option.OptionRisk{About: "outcome", Text: text})
	}
	for _, text := range t.otherCarts() {
		risks = append(risks, option.OptionRisk{About: "lookup", Text: text})
	}
	return risks
}

// shapedAnswers warn about a rule that reads what a client can shape: it may rename every field below data,
// and so make the answer to one field look like the answer to another.
func (t *Terms) shapedAnswers() (risks []string) {
	if len(t.setup.GraphQL) == 0 || t.Ask != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.Answers)) {
		tests := t.Answers[name].JSON
		if at := slices.IndexFunc(tests, func(t outcome.JSONTest) bool { return t.Path == "data" || strings.HasPrefix(t.Path, "data.") }); at >= 0 {
			risks = append(risks, "@"+name+" reads "+tests[at].Path+" in the answer of a GraphQL server, where the client chooses the names of fields and can make a sold order look released: "+
				"ask the shop with `outcome ask`, let it confirm with `outcome backend`, or read only errors")
		}
	}
	return risks
}

// outcomeRisks returns warnings about rules that probably take an answer of the shop for its contrary.
func (t *Terms) outcomeRisks() []string {
	risks := outcome.Risks(t.Rules, t.Answers)
	if t.Lookup != nil && (t.Outcome == "" || t.Outcome == "response") {
		risks = append(risks, responseToCart)
	}
	if t.Ask != nil && t.Ask.ByAnswer() && (t.InDoubt == nil || t.InDoubt.Probe == "") {
		risks = append(risks, unnamedOrder)
	}
	if t.InDoubt != nil {
		for _, risk := range outcome.Risks(t.InDoubt.Rules, t.Answers) {
			risks = append(risks, "in_doubt probe: "+risk)
		}
	}
	return risks
}

// unnamedOrder warns of orders that the shop is never asked about.
const unnamedOrder = "outcome ask names the order by {answer.…}: where the shop's answer lacks it, or never comes, the order is in doubt until an operator resolves it; " +
	"add `in_doubt probe` with a URL that has {ref}"

// A gate with a lookup may reserve another cart than the shop sells.
const (
	otherCart = "the path %s names a cart, and the lookup does not ask for that one: a client can have one cart looked up and order another; " +
		"read its name with `ref {path.%d}`, and name the cart by {ref} in the URL or the body of the lookup"
	responseToCart = "`outcome response` believes the shop's answer to the client, and the shop may have sold another cart than the one that was looked up: " +
		"ask the shop with `outcome ask` and `lines`, which compares them"
)

// LookedUp returns the credentials that the shop tells.
func (t *Terms) LookedUp() (credentials []string) {
	for _, expr := range t.setup.OneAtATime.Credentials {
		if v, err := attempt.Compile(expr); err == nil && v.Kind() == attempt.Lookup {
			credentials = append(credentials, expr)
		}
	}
	return credentials
}

// otherCarts returns warnings about the patterns of paths that name a cart of which the lookup does not know.
func (t *Terms) otherCarts() (risks []string) {
	if t.Lookup == nil {
		return nil
	}
	for _, pattern := range t.setup.Paths() {
		if at, ok := namedSegment(pattern); ok && !t.looksUp(at) {
			risks = append(risks, fmt.Sprintf(otherCart, pattern, at))
		}
	}
	return risks
}

// namedSegment returns the last segment of a pattern that may be anything and is not its end.
func namedSegment(pattern string) (index int, ok bool) {
	segments := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	for at, segment := range slices.Backward(segments[:len(segments)-1]) {
		if segment == "*" {
			return at, true
		}
	}
	return 0, false
}

// looksUp reports whether the lookup asks for what a segment of the path names.
func (t *Terms) looksUp(segment int) bool {
	return strings.Contains(t.Lookup.URL+t.Lookup.Body, "{ref}") && slices.ContainsFunc(t.Ref, func(expr string) bool {
		v, err := attempt.Compile(expr)
		return err == nil && v.Kind() == attempt.Path && v.Index() == segment
	})
}
