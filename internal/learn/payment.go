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

// expected are events of providers, as docs/webhooks.md has them, by the host of the page on which buyers pay.
var expected = map[string]*hook{
	"stripe.com": {schemes: []string{"stripe"}, ref: "data.object.client_reference_id",
		tests: []string{"json type checkout.session.completed checkout.session.async_payment_succeeded", "json data.object.payment_status paid"}},
	"adyen.com":      {schemes: []string{"adyen"}, ref: "merchantReference", tests: []string{"json eventCode AUTHORISATION", "json success true"}},
	"paypal.com":     {schemes: []string{"paypal"}, ref: "resource.custom_id", tests: []string{"json event_type PAYMENT.CAPTURE.COMPLETED", "json resource.status COMPLETED"}},
	"gocardless.com": {schemes: []string{"gocardless"}, ref: "resource_metadata.order_no", tests: []string{"json action confirmed"}},
}

// settleByTemplate writes a block that waits for an operator: the provider calls the shop directly, and no
// browser records that.
func (l *learner) settleByTemplate(to *url.URL) {
	path, h := "/webhooks/payment", &hook{schemes: []string{"hmac X-Signature sha256"}, ref: "order", tests: []string{"json status paid"}}
	for host, event := range expected {
		if to.Hostname() == host || strings.HasSuffix(to.Hostname(), "."+host) {
			path, h = "/webhooks/"+event.schemes[0], event
		}
	}
	verify := l.verifyLine(h.schemes[0], path)
	l.settleLater(resolveBlock(path, verify, h), "How does the payment settle the order?", "The provider's webhook goes to the shop, not to the browser, so it was not recorded. Say at which path the shop takes it, how it is signed, "+
		"where it has the order's number, and which event is a payment (docs/webhooks.md), and take the # away. Without it the shop must confirm through stockgate_api: until then a paid order is not confirmed, and its units come back.")
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
