package learn

import (
	"slices"
	"strings"
)

var refNames = []string{"orderno", "ordernumber", "orderid", "orderref", "reference", "ref", "cartid", "cart", "basketid", "basket", "checkoutid", "checkout", "checkouttoken", "quoteid"}

// findRef finds the shop's own number of the order or cart, where the order request or its cart has one.
func (l *learner) findRef() {
	if l.cart != nil {
		l.refOfCart()
		return
	}
	value, text := l.refInRequest()
	if value == "" {
		return
	}
	l.plan.ref = text
	line := "ref " + value
	l.plan.add(line, because("names the order, and so do later requests or answers", l.order.Exchange))
	l.question("Does each order have a number of its own here?", "An order with a number that was sold is not sold again, but forwarded under the same reservation. If two purchases can have the same number, leave the line out.", line)
}

func (l *learner) refOfCart() {
	if named := l.cart.ref; named.value != "" {
		l.plan.ref = named.leaf.text
		l.plan.add("ref "+named.value, because("names the cart", l.order.Exchange))
		return
	}
	if id := l.cartID(); id != "" {
		line := "ref {lookup." + id + "}"
		l.plan.ref, _ = scalar(at(l.cart.tree, id))
		l.plan.cartID = id
		l.plan.add(line, because("names the cart", l.cart.Exchange))
		l.question("Does each order have a cart of its own?", "An order with a cart that was sold is not sold again, but forwarded under the same reservation. If the shop fills the same cart again after an order, leave the line out.", line)
	}
}

// refInRequest looks for a value with the name of a number that recurs in the order's answer or elsewhere.
func (l *learner) refInRequest() (value, text string) {
	for _, v := range l.requestValues() {
		if slices.Contains(refNames, folded(v.leaf.name())) && l.recurs(v.leaf.text) && !l.isItem(v.leaf.text) && !l.sameInOther(v.value, v.leaf.text) {
			return v.value, v.leaf.text
		}
	}
	return "", ""
}

// requestValue is a value of the order request, and how a gate reads it.
type requestValue struct {
	value string
	leaf  leaf
}

func (l *learner) requestValues() []requestValue { return valuesOf(l.order) }

// valuesOf returns what a request has in its body or arguments, its query and its path.
func valuesOf(c *candidate) (all []requestValue) {
	add := func(prefix string, tree any) {
		for _, leaf := range leavesOf(tree) {
			if isPlainPath(leaf.path) {
				all = append(all, requestValue{"{" + prefix + "." + leaf.dotted() + "}", leaf})
			}
		}
	}
	if c.op != nil {
		add("graphql", c.op.arguments)
		return all
	}
	if kind, fields := c.body(); kind != kindNone {
		add(kind, fields)
	}
	add("query", treeOf(c.URL.Query()))
	segments := c.segments()
	for i := 1; i < len(segments); i++ {
		if c.hasID(segments[i]) {
			name := strings.TrimSuffix(segments[i-1], "s")
			all = append(all, requestValue{pathValue(i), leaf{[]string{name}, segments[i]}})
		}
	}
	return all
}

// recurs reports whether a value is in another answer or URL of the recording.
func (l *learner) recurs(text string) bool {
	if len(text) < 3 || isPlain(text) && len(text) < 3 {
		return false
	}
	return slices.ContainsFunc(l.recordings[0].Exchanges, func(x *Exchange) bool {
		return strings.Contains(string(x.Answer), text) || x != l.order.Exchange && strings.Contains(x.URL.String(), text) || strings.Contains(x.AnswerHeader.Get("Location"), text)
	})
}

func (l *learner) isItem(text string) bool {
	return slices.ContainsFunc(l.plan.lines.lines, func(i itemLine) bool { return i.SKU == text })
}

// sameInOther reports whether another purchase has the same value there.
func (l *learner) sameInOther(value, text string) bool {
	return slices.ContainsFunc(l.again, func(c *candidate) bool {
		return slices.ContainsFunc(valuesOf(c), func(v requestValue) bool { return v.value == value && v.leaf.text == text })
	})
}

// findRetries reads the key by which the shop's client repeats an order.
func (l *learner) findRetries() {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		switch {
		case l.order.Header.Get(name) == "":
		case l.cart != nil || l.plan.asksBuyer:
			l.question("Does the shop's client send an order again?", "Its order request has a key for that ("+name+"). A gate with a lookup does not read it: if clients repeat orders, name the order by `ref`, or find the buyer without a lookup.", "lookup")
			return
		default:
			l.plan.add("idempotency {header."+name+"}", because("has a key of its own", l.order.Exchange))
			return
		}
	}
}
