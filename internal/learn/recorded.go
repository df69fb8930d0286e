package learn

import "slices"

// Recorded returns what was recorded of a question that a gate asks while an order is played: the last one before it
// in its recording, or else the first one after it. nil: there is none.
func (l *Learned) Recorded(method, path string, body []byte, played *Exchange) *Exchange {
	var after *Exchange
	for _, x := range slices.Backward(l.Others) {
		if x.File != played.File || x.Method != method || x.URL.EscapedPath() != path || !asksTheSame(x, body) {
			continue
		}
		if x.Entry < played.Entry {
			return x
		}
		after = x
	}
	return after
}

// asksTheSame compares the documents of questions to a GraphQL server, and their variables. All other questions have
// no body.
func asksTheSame(x *Exchange, body []byte) bool {
	other := &Exchange{Method: x.Method, Header: x.Header, Body: body}
	asked, ok := queryIn(other)
	if !ok {
		return true
	}
	own, ok := queryIn(x)
	return ok && squeezed(own.Query) == squeezed(asked.Query) &&
		slices.EqualFunc(leavesOf(decodeJSON(own.Variables)), leavesOf(decodeJSON(asked.Variables)), func(a, b leaf) bool { return a.dotted() == b.dotted() && a.text == b.text })
}

// IsWebhook reports whether a request goes to a stockgate_resolve of the configuration.
func (l *Learned) IsWebhook(x *Exchange) bool {
	return l.plan.hook != "" && isSigned(x) && x.pattern(l.hidden) == l.plan.hook
}

// Removed asks about a field that does not reach the shop.
func (l *Learned) Removed(x *Exchange, field string) {
	if !l.hidden.name(field) {
		field = "a field"
	}
	l.Questions = append(l.Questions, Question{"Does the shop need " + field + "?",
		because("it has "+field+" in its header, which stockgate_guard removes, because servers may read another request in it (docs/security.md)", x), "stockgate_guard"})
}

// Doubt asks about refused orders whose answer no rule matches, so that their units stay in doubt.
func (l *Learned) Doubt(refused []*Exchange) {
	for _, x := range refused {
		l.Questions = append(l.Questions, Question{"What tells that this order was refused?",
			because("the shop refused this order, and no rule matches its answer, so its units stay in doubt until they are settled by hand. Add a rule for it", x), "release"})
	}
}
