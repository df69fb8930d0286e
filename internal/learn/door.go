package learn

import (
	"slices"
	"strings"
)

// Names of fields, folded, that say what a request is where one path takes all; the best first.
var actionNames = []string{"action", "operation", "op", "method", "command", "cmd", "type", "act", "do", "route", "event"}

// atTheSamePath returns the other requests with the method and the path of the order.
func (l *learner) atTheSamePath(path string) (all []*Exchange) {
	for _, x := range l.fromShop() {
		if x.Method == l.order.Method && x.pattern(l.hidden) == path && !l.isOrder(x) {
			all = append(all, x)
		}
	}
	return all
}

// operationInBody names the order by a field of its JSON where other requests share its path.
func (l *learner) operationInBody(path string) bool {
	others := l.atTheSamePath(path)
	kind, fields := l.order.body()
	if len(others) == 0 || kind != kindJSON {
		return false
	}
	field, value := l.tells(fields, others, func(x *Exchange) any { _, other := x.body(); return other })
	if field == "" {
		return false
	}
	l.plan.matcher = []option{{path + "*", ""}}
	line := "json_body " + field + " " + value
	l.plan.add(line, because("its value", l.order.Exchange)+"; "+because("has another one", others[0]))
	l.question("Which values of this field are an order?", "Requests of several kinds share this path. Name every value that the shop takes for an order.", line)
	return true
}

// operationInQuery names the order by a parameter where other requests share its path.
func (l *learner) operationInQuery(path string) string {
	others := l.atTheSamePath(path)
	if len(others) == 0 {
		return ""
	}
	name, value := l.tells(treeOf(l.order.URL.Query()), others, func(x *Exchange) any { return treeOf(x.URL.Query()) })
	if name == "" {
		return ""
	}
	return name + "=" + value
}

// tells finds the field by which an order differs from all others.
func (l *learner) tells(order any, others []*Exchange, fieldsOf func(*Exchange) any) (field, value string) {
	best := len(actionNames)
	for _, leaf := range leavesOf(order) {
		rank := slices.Index(actionNames, folded(leaf.name()))
		word, ok := l.hidden.word(leaf.text)
		if rank < 0 || rank >= best || !ok || len(leaf.path) > 2 || !l.hidden.path(leaf.dotted()) || slices.ContainsFunc(leaf.path, isNumber) {
			continue
		}
		same := func(x *Exchange) bool {
			text, _ := scalar(at(fieldsOf(x), leaf.dotted()))
			return strings.EqualFold(text, leaf.text)
		}
		if !slices.ContainsFunc(others, same) {
			best, field, value = rank, leaf.dotted(), word
		}
	}
	return field, value
}
