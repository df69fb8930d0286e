package learn

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/filters/webhook"
)

// hook is a recorded webhook of a payment. Only a recording at the shop's side has one.
type hook struct {
	*Exchange
	schemes []string // of its signature: the likeliest first; empty: it is described by hand
	events  string   // where it has several events; empty: it is one
	ref     string   // where an event has the order's number
	tests   []string // what an event of a payment has
}

// signatureHeader returns the field with the signature of a webhook; empty: it is none.
func signatureHeader(x *Exchange) string {
	names := make([]string, 0, 1)
	for name := range x.Header {
		n := folded(name)
		if (strings.Contains(n, "signature") || strings.Contains(n, "hmac")) && nameLike.MatchString(name) {
			names = append(names, http.CanonicalHeaderKey(name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// isSigned reports whether a request is a webhook: a server signs it. Clients of some shops sign too, and browsers
// are known by what they send.
func isSigned(x *Exchange) bool {
	if x.Method != http.MethodPost || bearerClaims(x) != nil || slices.ContainsFunc([]string{"Cookie", "Origin", "Referer", "Sec-Fetch-Mode"}, func(name string) bool { return x.Header.Get(name) != "" }) {
		return false
	}
	return signatureHeader(x) != "" || len(schemesOf(x)) > 0
}

// schemesOf names the schemes of which the signature of a request may be.
func schemesOf(x *Exchange) []string {
	return slices.DeleteFunc(webhook.Recognise(&webhook.Delivery{Header: x.Header, URI: x.URL.RequestURI(), Body: x.Body}), func(scheme string) bool {
		return len(scheme) > 100 || strings.Trim(scheme, lettersOfSchemes) != ""
	})
}

const lettersOfSchemes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_ "

// webhook finds the event of the payment: the last one that says that the order is paid. nil: there is none.
func (l *learner) webhook() (found *hook) {
	var unclear *hook
	for _, x := range l.fromShop() {
		if x.Entry <= l.order.Entry || !isSigned(x) || strings.Contains(x.pattern(l.hidden), "*") {
			continue
		}
		h := l.hookOf(x)
		switch {
		case h.saysPaid():
			found = h
		case unclear == nil:
			unclear = h
		}
	}
	if found == nil && unclear != nil {
		l.question("Is this the webhook of the payment?", because("is signed, and does not name the order and say that it is paid where learn looks for that, so it settles nothing", unclear.Exchange), "outcome backend")
	}
	return found
}

// Parts of words that events of a payment have, and what other events have.
var (
	paidWords   = []string{"paid", "captur", "succe", "complet", "settl", "authoris", "authoriz", "approv", "confirm", "finish", "true"}
	unpaidWords = []string{"creat", "pend", "open", "fail", "cancel", "expir", "declin", "refus", "requir", "process", "refund", "unpaid", "disput", "void", "chargeback", "false"}
)

// saysPaid reports whether an event names its order and what has become of it, and that is a payment.
func (h *hook) saysPaid() bool {
	has := func(parts []string) bool {
		return slices.ContainsFunc(h.tests, func(test string) bool {
			word := strings.ToLower(test[strings.LastIndex(test, " ")+1:])
			return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(word, part) })
		})
	}
	return h.ref != "" && has(paidWords) && !has(unpaidWords)
}

// hookOf reads a webhook, as far as it names its order and says what has become of it.
func (l *learner) hookOf(x *Exchange) *hook {
	h := &hook{Exchange: x, schemes: schemesOf(x)}
	_, tree := x.body()
	for _, leaf := range leavesOf(tree) {
		named := slices.Contains(idNames, folded(leaf.name())) || slices.Contains(refNames, folded(leaf.name()))
		if leaf.text != l.plan.ref || len(leaf.text) < 3 && !named || !l.hidden.path(leaf.dotted()) {
			continue
		}
		event, at := tree, leaf.path
		if i := slices.IndexFunc(at, isNumber); i >= 0 {
			h.events = "{" + strings.Join(append([]string{"json"}, at[:i]...), ".") + "}"
			event, at = valueAt(tree, at[:i+1]), at[i+1:]
		}
		if preset := h.preset(); preset != nil && preset.Events != nil {
			h.events = ""
			if preset.Events.Member != "" && len(at) > 1 {
				event, at = valueAt(event, at[:1]), at[1:]
			}
		}
		if slices.ContainsFunc(at, isNumber) || len(at) == 0 {
			continue
		}
		h.ref = strings.Join(at, ".")
		h.tests = l.testsOf(event, at)
		return h
	}
	return h
}

// preset is the likeliest one; nil: there is none.
func (h *hook) preset() *webhook.Preset {
	if len(h.schemes) == 0 {
		return nil
	}
	return webhook.Presets[h.schemes[0]]
}

func valueAt(tree any, path []string) any { return at(tree, strings.Join(path, ".")) }

// Names of fields, folded, that say what an event is, and what has become of the payment; the best first.
var (
	eventNames = []string{"type", "event", "eventtype", "eventcode", "eventname", "action"}
	stateNames = []string{"paymentstatus", "status", "state", "success"}
)

// testsOf writes the tests by which an event of a payment is known: its kind, and the state beside the number of the
// order or above it.
func (l *learner) testsOf(event any, ref []string) (tests []string) {
	if test := l.testIn(event, nil, eventNames); test != "" {
		tests = append(tests, test)
	}
	for depth := len(ref) - 1; depth >= 0; depth-- {
		if test := l.testIn(event, ref[:depth], stateNames); test != "" {
			return append(tests, test)
		}
	}
	return tests
}

// testIn compares the best of these names among the fields of an object.
func (l *learner) testIn(event any, path, names []string) string {
	object, _ := valueAt(event, path).(map[string]any)
	best, test := len(names), ""
	for _, name := range slices.Sorted(maps.Keys(object)) {
		text, _ := scalar(object[name])
		word, ok := l.hidden.word(text)
		rank := slices.Index(names, folded(name))
		if rank >= 0 && rank < best && ok && l.hidden.name(name) {
			best, test = rank, "json "+strings.Join(append(slices.Clone(path), name), ".")+" "+word
		}
	}
	return test
}

// settleBy writes stockgate_resolve for a recorded webhook.
func (l *learner) settleBy(h *hook) {
	const events = "confirm @paid"
	path := h.pattern(l.hidden)
	if len(h.schemes) == 0 {
		text := resolveBlock(path, "verify signed {\n\t\talgorithm hmac-sha256\n\t\tkey {env.WEBHOOK_SECRET}\n\t\tover {body}\n\t\tsignature {header."+signatureHeader(h.Exchange)+"} hex\n\t}", h)
		l.settleLater(text, "How is the webhook signed?", because("is signed in "+signatureHeader(h.Exchange)+", and in the way of no provider that is known. Describe what is signed (docs/configure.md#signed), and take the # away", h.Exchange))
		return
	}
	verify := l.verifyLine(h.schemes[0], path)
	if l.isShared(path) {
		l.settleLater(resolveBlock(path, verify, h), "Can the webhook have a path of its own?", because("comes to a path that takes other requests too, and `stockgate_resolve` refuses what is not signed. Give the webhook another path at the provider and in the shop, write it here, and take the # away", h.Exchange))
		return
	}
	l.plan.hook = path
	l.plan.after = append(l.plan.after, option{resolveBlock(path, verify, h), because("the webhook of the payment", h.Exchange)})
	likely := because("has a signature of the form of `"+h.schemes[0]+"`", h.Exchange)
	if more := h.schemes[1:]; len(more) > 0 {
		likely += ", and also of `" + strings.Join(more, "`, `") + "`"
	}
	l.question("Which secret signs the webhook?", likely+". Check that the scheme is your provider's (docs/webhooks.md#other-providers), and set the variable to the secret that the provider shows; with paypal to the webhook's id. "+
		"The check of the recording does not play this request.", verify)
	l.question("Which events are a payment?", "Those that have what the recorded one has. Add other events after which an order is paid. Without an event that says that no payment will come, the units of an order that is not paid come back after `hold_for`.", events)
}

// isShared reports whether other requests than webhooks come to a path.
func (l *learner) isShared(path string) bool {
	return slices.ContainsFunc(l.fromShop(), func(x *Exchange) bool { return !isSigned(x) && x.pattern(l.hidden) == path })
}

// verifyLine writes how a scheme is verified.
func (l *learner) verifyLine(scheme, path string) string {
	preset := webhook.Presets[scheme]
	switch {
	case preset != nil && preset.Issuer != nil:
		return "verify " + scheme + " {env.WEBHOOK_ID}"
	case preset != nil && preset.URL:
		host := l.plan.host
		if !validHost(host) {
			host = "shop.example.com"
		}
		return "verify " + scheme + " {env.WEBHOOK_SECRET} https://" + host + path
	}
	return "verify " + scheme + " {env.WEBHOOK_SECRET}"
}

// resolveBlock writes a stockgate_resolve.
func resolveBlock(path, verify string, h *hook) string {
	events := ""
	if h.events != "" {
		events = "\n\tevents " + h.events
	}
	return fmt.Sprintf("stockgate_resolve %s {\n\t%s%s\n\tref {json.%s}\n\t@paid {\n\t\t%s\n\t}\n\tconfirm @paid\n}", path, verify, events, h.ref, strings.Join(h.tests, "\n\t\t"))
}

// settleLater writes a block that waits for an operator.
func (l *learner) settleLater(block, title, text string) {
	commented := "# " + strings.ReplaceAll(block, "\n", "\n# ")
	first, _, _ := strings.Cut(commented, "\n")
	n := l.question(title, text, first)
	l.plan.after = append(l.plan.after, option{commented, seeQuestion(n)})
}
