package learn

import (
	"fmt"
	"net/http"
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

// signatureHeader returns the field with the signature of a webhook; empty: it is none.
func signatureHeader(x *Exchange) string {
	for name := range x.Header {
		n := folded(name)
		if (strings.Contains(n, "signature") || strings.Contains(n, "hmac")) && nameLike.MatchString(name) {
			return http.CanonicalHeaderKey(name)
		}
	}
	return ""
}

// webhook finds the event of the payment, which only a recording at the shop's side has.
func (l *learner) webhook() *Exchange {
	for _, x := range l.fromShop() {
		if x.Entry > l.order.Entry && x.Method == "POST" && signatureHeader(x) != "" && l.refIn(x) != "" && l.kindOfEvent(x) != "" {
			return x
		}
	}
	return nil
}

// refIn returns where an event has the order's number.
func (l *learner) refIn(x *Exchange) string {
	_, tree := x.body()
	for _, leaf := range leavesOf(tree) {
		if leaf.text == l.plan.ref && l.hidden.path(leaf.dotted()) {
			return leaf.dotted()
		}
	}
	return ""
}

// kindOfEvent writes the test by which the event of a payment is known.
func (l *learner) kindOfEvent(x *Exchange) string {
	_, tree := x.body()
	for _, want := range []string{"type", "event", "eventcode", "status"} {
		for _, leaf := range leavesOf(tree) {
			if word, ok := l.hidden.word(leaf.text); ok && folded(leaf.name()) == want && len(leaf.path) == 1 && l.hidden.path(leaf.dotted()) {
				return "json " + leaf.dotted() + " " + word
			}
		}
	}
	return ""
}

// settleBy writes stockgate_resolve for a recorded webhook.
func (l *learner) settleBy(x *Exchange) {
	verify := "verify hmac " + signatureHeader(x) + " sha256 {env.WEBHOOK_SECRET}"
	switch signatureHeader(x) {
	case "Stripe-Signature":
		verify = "verify stripe {env.WEBHOOK_SECRET}"
	case "Webhook-Signature":
		verify = "verify standard {env.WEBHOOK_SECRET}"
	}
	text := resolveBlock(x.pattern(l.hidden), verify, l.refIn(x), l.kindOfEvent(x))
	l.plan.after = append(l.plan.after, option{text, because("the webhook of the payment", x)})
	l.question("Which secret signs the webhook?", "Set the variable to the secret that the payment provider shows, and check that the scheme is the provider's.", verify)
	l.question("Which event says that no payment will come?", "Without one, the units of an order that is not paid come back after `hold_for`.", "confirm @paid")
}

func resolveBlock(path, verify, ref, event string) string {
	return fmt.Sprintf("stockgate_resolve %s {\n\t%s\n\tref {json.%s}\n\t@paid {\n\t\t%s\n\t}\n\tconfirm @paid\n}", path, verify, ref, event)
}

// settleByTemplate writes a block that waits for an operator: the provider calls the shop directly, and no
// browser records that.
func (l *learner) settleByTemplate(to *url.URL) {
	verify, ref, event, path := "verify hmac X-Signature sha256 {env.WEBHOOK_SECRET}", "order", "json status paid", "/webhooks/payment"
	if strings.HasSuffix(to.Hostname(), "stripe.com") {
		verify, ref, path = "verify stripe {env.WEBHOOK_SECRET}", "data.object.client_reference_id", "/webhooks/stripe"
		event = "json type checkout.session.completed checkout.session.async_payment_succeeded\n\t\tjson data.object.payment_status paid"
	}
	if strings.HasSuffix(to.Hostname(), "adyen.com") {
		verify, ref, path = "verify adyen {env.WEBHOOK_SECRET}", "merchantReference", "/webhooks/adyen"
		event = "json eventCode AUTHORISATION\n\t\tjson success true"
	}
	text := "# " + strings.ReplaceAll(resolveBlock(path, verify, ref, event), "\n", "\n# ")
	n := l.question("How does the payment settle the order?", "The provider's webhook goes to the shop, not to the browser, so it was not recorded. Say at which path the shop takes it, how it is signed, "+
		"where it has the order's number, and which event is a payment (docs/webhooks.md), and take the # away. Without it the shop must confirm through stockgate_api: until then a paid order is not confirmed, and its units come back.",
		"# stockgate_resolve "+path+" {")
	l.plan.after = append(l.plan.after, option{text, seeQuestion(n)})
}

// askOrder finds the request after the order that shows it, with its lines, and lets the gate ask that.
func (l *learner) askOrder() bool {
	for _, x := range l.fromShop() {
		tree := x.answerTree()
		lines := findLines(tree)
		if x.Entry <= l.order.Entry || x.Method != "GET" || x.Status != 200 || lines == nil || !lines.list || lines.quantity == "" {
			continue
		}
		path, ok := l.askedBy(x)
		state, word := l.stateIn(tree)
		if !ok || state == "" || !sameLines(lines.lines, l.plan.lines.lines) || lines.array != "" && !l.hidden.path(lines.array) || !l.hidden.path(lines.item) {
			continue
		}
		inner := lines.option("ask")
		l.plan.add("outcome ask GET http://"+shopAddress+path+" {\n\t"+inner+"\n}", because("shows the order", x))
		tests := "\tstatus 200\n\tjson " + state + " " + word
		if named := l.refIn(&Exchange{Header: x.AnswerHeader, Body: x.Answer}); named != "" && strings.Contains(path, "{ref}") {
			tests += "\n\tjson " + named + " {ref}"
		}
		l.plan.add("@sold {\n"+tests+"\n}", because("its state", x))
		l.plan.add("confirm @sold", because("shows an order that was sold", x))
		n := l.question("What does the shop answer about an order that was not placed?", "The gate asks the shop how the order ended. The recording shows an order that was placed; for one that was not, the gate expects 404.", "release 404")
		l.plan.add("release 404", seeQuestion(n))
		l.plan.confirms = true
		return true
	}
	return false
}

// askedBy writes the path of a question about the order: what varies in it is the ref, or in the order's answer.
func (l *learner) askedBy(x *Exchange) (string, bool) {
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
			return "", false
		}
		named = true
	}
	return "/" + strings.Join(own, "/"), named
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
