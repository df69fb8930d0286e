package learn

import (
	"net/url"
	"slices"
	"strings"
)

// paysLater lets a webhook or the shop settle what is paid at another company's page.
func (l *learner) paysLater(to *url.URL) {
	l.plan.backend = true
	l.plan.add("outcome backend", because("leads to a page of "+hostName(to)+", where the buyer pays", l.order.Exchange))
	l.plan.add("hold_for 15m", "")
	l.question("How long may a buyer take to pay?", "The units are held until the payment is settled. Give them a little longer than the payment page is open.", "hold_for 15m")
	if l.plan.ref == "" {
		l.question("How does the shop say that an order is paid?", "The order request has no number of the order or cart that the payment's webhook could name. "+
			"Let the shop confirm and release through stockgate_api (docs/api.md), by the reservation's id in the header Stockgate-Token.", "outcome backend")
		return
	}
	if hook := l.webhook(); hook != nil {
		l.settleBy(hook)
		return
	}
	l.settleByTemplate(to)
}

func hostName(u *url.URL) string {
	if validHost(u.Hostname()) {
		return u.Hostname()
	}
	return "another company"
}

// settleByTemplate writes a block that waits for an operator: the provider calls the shop directly, and no
// browser records that.
func (l *learner) settleByTemplate(to *url.URL) {
	verify, path, h := "verify hmac X-Signature sha256 {env.WEBHOOK_SECRET}", "/webhooks/payment", &hook{ref: "order", tests: []string{"json status paid"}}
	if strings.HasSuffix(to.Hostname(), "stripe.com") {
		verify, path = "verify stripe {env.WEBHOOK_SECRET}", "/webhooks/stripe"
		h = &hook{ref: "data.object.client_reference_id", tests: []string{"json type checkout.session.completed checkout.session.async_payment_succeeded", "json data.object.payment_status paid"}}
	}
	if strings.HasSuffix(to.Hostname(), "adyen.com") {
		verify, path = "verify adyen {env.WEBHOOK_SECRET}", "/webhooks/adyen"
		h = &hook{ref: "merchantReference", tests: []string{"json eventCode AUTHORISATION", "json success true"}}
	}
	l.settleLater(resolveBlock(path, verify, h), "How does the payment settle the order?", "The provider's webhook goes to the shop, not to the browser, so it was not recorded. Say at which path the shop takes it, how it is signed, "+
		"where it has the order's number, and which event is a payment (docs/webhooks.md), and take the # away. Without it the shop must confirm through stockgate_api: until then a paid order is not confirmed, and its units come back.")
}

// refIn returns where an answer has the order's number.
func (l *learner) refIn(x *Exchange) string {
	for _, leaf := range leavesOf(x.answerTree()) {
		if leaf.text == l.plan.ref && l.hidden.path(leaf.dotted()) {
			return leaf.dotted()
		}
	}
	return ""
}

// askOrder finds the request after the order that shows it, with its lines, and lets the gate ask that.
func (l *learner) askOrder() bool {
	for _, x := range l.fromShop() {
		tree := x.answerTree()
		lines := findLines(tree)
		if x.Entry <= l.order.Entry || x.Method != "GET" || x.Status != 200 || lines == nil || !lines.list || lines.quantity == "" {
			continue
		}
		path, dropped, ok := l.askedBy(x)
		state, word := l.stateIn(tree)
		if !ok || state == "" || !sameLines(lines.lines, l.plan.lines.lines) || lines.array != "" && !l.hidden.path(lines.array) || !l.hidden.path(lines.item) {
			continue
		}
		inner := lines.option("ask")
		l.plan.add("outcome ask GET http://"+shopAddress+path+" {\n\t"+inner+"\n}", because("shows the order", x))
		tests := "\tstatus 200\n\tjson " + state + " " + word
		if named := l.refIn(x); named != "" && strings.Contains(path, "{ref}") {
			tests += "\n\tjson " + named + " {ref}"
		}
		l.plan.add("@sold {\n"+tests+"\n}", because("its state", x))
		l.plan.add("confirm @sold", because("shows an order that was sold", x))
		n := l.question("What does the shop answer about an order that was not placed?", "The gate asks the shop how the order ended. The recording shows an order that was placed; for one that was not, the gate expects 404.", "release 404")
		l.plan.add("release 404", seeQuestion(n))
		l.askDropped(&cart{Exchange: x, dropped: dropped}, "release 404")
		l.plan.confirms = true
		return true
	}
	return false
}

// askedBy writes the path of a question about the order: what varies in it is the ref, or in the order's answer.
func (l *learner) askedBy(x *Exchange) (path string, dropped []string, ok bool) {
	own, named := x.segments(), false
	for i, s := range x.template(l.hidden) {
		if s != "*" {
			continue
		}
		switch {
		case own[i] == l.plan.ref:
			own[i] = "{ref}"
		case l.inAnswer(own[i]) != "":
			own[i] = "{answer." + l.inAnswer(own[i]) + "}"
		default:
			return "", nil, false
		}
		named = true
	}
	c := &cart{Exchange: x, ref: requestValue{"the ref", leaf{text: l.plan.ref}}}
	return "/" + strings.Join(own, "/") + l.queryAsked(c), c.dropped, named
}

// inAnswer returns where the answer to the order has a value.
func (l *learner) inAnswer(text string) string {
	for _, leaf := range leavesOf(l.order.answerTree()) {
		if leaf.text == text && l.hidden.path(leaf.dotted()) && isPath(leaf.dotted()) {
			return leaf.dotted()
		}
	}
	return ""
}

// stateIn finds the field with an order's state.
func (l *learner) stateIn(tree any) (path, word string) {
	for _, want := range []string{"state", "status", "orderstate", "orderstatus", "paymentstatus"} {
		for _, leaf := range leavesOf(tree) {
			if w, ok := l.hidden.word(leaf.text); ok && folded(leaf.name()) == want && isPath(leaf.dotted()) && l.hidden.path(leaf.dotted()) {
				return leaf.dotted(), w
			}
		}
	}
	return "", ""
}

func sameLines(a, b []itemLine) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(line itemLine) bool { return !slices.Contains(b, line) })
}
