package learn

import (
	"maps"
	"slices"
	"strings"
)

// Words in the path, or in the name of an operation, by which an order request is known.
var (
	orderWords = []string{"placeorder", "completecart", "checkoutcomplete", "addpaymenttoorder", "submitorder", "createorder", "purchase", "complete", "checkout", "order", "buy", "place", "pay", "confirm", "kaufen", "bestellung"}
	otherWords = []string{"login", "signin", "signup", "register", "auth", "logout", "analytics", "collect", "tracking", "metrics", "beacon", "consent", "newsletter", "search",
		"addtocart", "additem", "lineitem", "items", "shippingmethod", "setshipping", "address", "estimate", "totals", "validate", "coupon", "discount", "paymentsession", "paymentintent",
		"setorder", "cart/add", "basket/add", "webhook", "sentry", "telemetry"}
	providers = []string{"stripe.com", "adyen.com", "paypal.com", "mollie.com", "klarna.com", "braintreegateway.com", "checkout.com", "squareup.com"}
)

// leastScore is what a request needs to be taken for an order.
const leastScore = 6

// candidate is a request that may place an order.
type candidate struct {
	*Exchange
	op    *operation
	score int
	ref   string // an order's number that its answer shows
}

// shape is what requests have in common that do the same.
func (c *candidate) shape() string {
	field := ""
	if c.op != nil {
		field = c.op.field
	}
	return c.Method + " " + c.URL.Host + " " + strings.Join(c.template(nil), "/") + " " + field + " " + c.action()
}

// action is what the body or the query says that the request is, where one path takes several; empty: nothing.
func (c *candidate) action() string {
	trees := []any{treeOf(c.URL.Query())}
	if kind, fields := c.body(); kind == kindJSON && c.op == nil {
		trees = append(trees, fields)
	}
	for _, tree := range trees {
		object, _ := tree.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if text, ok := object[name].(string); ok && slices.Contains(actionNames[:7], folded(name)) && len(text) < 64 {
				return text
			}
		}
	}
	return ""
}

// candidates returns the requests of a recording that may place an order, the likeliest first.
func (l *learner) candidates(rec *Recording) (found []*candidate) {
	for _, x := range rec.Exchanges {
		if !x.changes() || x.Method == "DELETE" || l.isProvider(x.URL.Hostname()) {
			continue
		}
		op, unknown := l.documents.operation(x)
		if op != nil && op.kind != "mutation" {
			continue
		}
		c := &candidate{Exchange: x, op: op}
		c.rate(l.site)
		if unknown {
			l.hashes = append(l.hashes, x)
			continue
		}
		if c.score >= leastScore {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b *candidate) int {
		if a.score != b.score {
			return b.score - a.score
		}
		return b.Entry - a.Entry // the last one: what comes before an order prepares it
	})
	return found
}

// rate says how much a request looks like an order.
func (c *candidate) rate(site string) {
	name := folded(strings.Join(c.segments(), "/"))
	last := folded(c.segments()[len(c.segments())-1])
	if c.op != nil {
		name, last = folded(c.op.field), folded(c.op.field)
	} else if action := folded(c.action()); action != "" {
		name, last = name+"/"+action, action
	}
	for _, word := range otherWords {
		if strings.Contains(name, folded(word)) {
			c.score -= 6
			break
		}
	}
	for i, word := range orderWords {
		if strings.Contains(name, word) {
			c.score += 8
			if i < 6 {
				c.score += 2
			}
			if strings.Contains(last, word) {
				c.score += 2
			}
			break
		}
	}
	if siteOf(c.URL.Hostname()) != site {
		c.score -= 5
	}
	c.rateAnswer()
}

// rateAnswer looks for what answers to orders have: a number, a page of thanks, a way to pay.
func (c *candidate) rateAnswer() {
	if c.Status == 201 {
		c.score += 2
	}
	for _, leaf := range leavesOf(c.answerTree()) {
		if isOrderNumber(leaf) {
			c.ref = leaf.text
			c.score += 4
			break
		}
	}
	if to := c.location(); to != nil {
		where := strings.ToLower(to.Path)
		for _, word := range []string{"thank", "success", "confirm", "order", "receipt", "complete", "danke"} {
			if strings.Contains(where, word) {
				c.score += 4
				c.ref = to.String()
				return
			}
		}
		if to.Host != c.URL.Host {
			c.score += 4
			c.ref = to.String()
		}
	}
}

// isOrderNumber reports whether a value in an answer is the number of an order.
func isOrderNumber(l leaf) bool {
	name, all := folded(l.name()), folded(l.dotted())
	switch name {
	case "ordernumber", "orderno", "orderid", "ordercode", "ordertoken", "orderref":
		return true
	case "number", "code", "id", "no", "ref", "reference", "displayid":
		return strings.Contains(strings.TrimSuffix(all, name), "order")
	}
	return false
}
