package learn

import (
	"slices"
	"strings"
)

// askOrder finds the request after the order that shows it, with its lines, and lets the gate ask that.
func (l *learner) askOrder() bool {
	for _, x := range l.fromShop() {
		tree := x.answerTree()
		lines := findLines(tree)
		if x.Entry <= l.order.Entry || x.Status != 200 || lines == nil || !lines.list || lines.quantity == "" {
			continue
		}
		about := &cart{Exchange: x, index: -1}
		question, ok := l.askedAbout(about)
		state, word := l.stateIn(tree)
		if !ok || state == "" || !sameLines(lines.lines, l.plan.lines.lines) || lines.array != "" && !l.hidden.path(lines.array) || !l.hidden.path(lines.item) {
			continue
		}
		l.plan.add("outcome ask "+question+" {\n\t"+lines.option("ask")+"\n}", because("shows the order", x))
		tests := "\tstatus 200\n\tjson " + state + " " + word
		if named := l.refIn(x); named != "" && strings.Contains(question, "{ref}") {
			tests += "\n\tjson " + named + " {ref}"
		}
		l.plan.add("@sold {\n"+tests+"\n}", because("its state", x))
		l.plan.add("confirm @sold", because("shows an order that was sold", x))
		l.askNotPlaced(x)
		l.askDropped(about, "release 404")
		l.plan.confirms = true
		return true
	}
	return false
}

// askNotPlaced asks what the shop says about an order that it does not have.
func (l *learner) askNotPlaced(x *Exchange) {
	text := "The gate asks the shop how the order ended. The recording shows an order that was placed; for one that was not, the gate expects 404."
	if x.Method == "POST" {
		text += " A GraphQL server answers 200 there: write what its answer has, as `@not { … }`, and `release @not`. Until then the units of a refused order stay in doubt. Never release what the shop only does not show to this client."
	}
	n := l.question("What does the shop answer about an order that was not placed?", text, "release 404")
	l.plan.add("release 404", seeQuestion(n))
}

// askedAbout writes a question about the order: what varies in it is the ref, what the shop said of the cart, a
// claim, or, of an order without GraphQL, in the order's answer.
func (l *learner) askedAbout(about *cart) (question string, ok bool) {
	named := false
	about.names = func(text string) string {
		name := l.nameOfOrder(text)
		named = named || name != ""
		return name
	}
	if about.Method == "POST" {
		body, ok := l.document(about)
		return "POST http://" + shopAddress + about.pattern(l.hidden) + " `" + body + "`", ok && named && !strings.Contains(about.pattern(l.hidden), "*")
	}
	own := about.segments()
	for i, s := range about.template(l.hidden) {
		if s == "*" {
			if own[i] = about.names(own[i]); own[i] == "" {
				return "", false
			}
		}
	}
	return "GET http://" + shopAddress + "/" + strings.Join(own, "/") + l.queryAsked(about), about.Method == "GET" && named
}

// nameOfOrder returns the placeholder of a value that names the order; empty: it does not.
func (l *learner) nameOfOrder(text string) string {
	switch {
	case text == "":
	case text == l.plan.ref:
		return "{ref}"
	case l.inTree(l.cart.tree, text) != "":
		return "{lookup." + l.inTree(l.cart.tree, text) + "}"
	case l.order.op == nil && l.inTree(l.order.answerTree(), text) != "":
		return "{answer." + l.inTree(l.order.answerTree(), text) + "}"
	}
	return ""
}

// names of fields, folded, that name an order or a cart.
var idNames = []string{"id", "cartid", "code", "number", "cartnumber", "basketid", "checkoutid", "uuid", "orderid", "ordernumber", "orderno", "ordercode", "token", "reference", "ref", "displayid"}

// inTree returns where an answer has a value that names an order or a cart: in a field of such a name, or an id that
// is no accident. Empty: nowhere.
func (l *learner) inTree(tree any, text string) string {
	for _, leaf := range leavesOf(tree) {
		named := slices.Contains(idNames, folded(leaf.name())) && !aboutPerson(leaf)
		if leaf.text == text && isPath(leaf.dotted()) && l.hidden.path(leaf.dotted()) && (named || len(text) > 4 && isVariable(text)) {
			return leaf.dotted()
		}
	}
	return ""
}

// refIn returns where an answer has the order's number.
func (l *learner) refIn(x *Exchange) string { return l.inTree(x.answerTree(), l.plan.ref) }
