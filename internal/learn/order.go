package learn

import (
	"fmt"
	"maps"
	"net"
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

// chooseOrder finds the order request of the first recording, and the same one in the others.
func (l *learner) chooseOrder() error {
	all := l.candidates(l.recordings[0])
	if l.options.Order > 0 {
		all = slices.DeleteFunc(l.everyChange(), func(c *candidate) bool { return c.Entry != l.options.Order })
		if len(all) == 0 {
			return fmt.Errorf("entry %d of %s is no request that may place an order: name a POST, PUT or PATCH", l.options.Order, l.recordings[0].File)
		}
	}
	if len(all) == 0 {
		return l.noOrder()
	}
	l.order = all[0]
	if err := l.unmixed(all); err != nil {
		return err
	}
	for _, other := range all[1:] {
		if other.shape() != l.order.shape() && other.score >= l.order.score-4 {
			l.rivals = append(l.rivals, other)
		}
	}
	return l.chooseOthers()
}

// everyChange returns all requests of the first recording that may change something.
func (l *learner) everyChange() (all []*candidate) {
	for _, x := range l.recordings[0].Exchanges {
		if x.changes() {
			op, _ := l.documents.operation(x)
			c := &candidate{Exchange: x, op: op}
			c.rate(l.site)
			all = append(all, c)
		}
	}
	return all
}

// unmixed refuses a recording of two purchases. The same request twice is one purchase if one was refused.
func (l *learner) unmixed(all []*candidate) error {
	for _, other := range all[1:] {
		if other.shape() != l.order.shape() {
			continue
		}
		if other.ref != "" && l.order.ref != "" && other.ref != l.order.ref && other.Status == l.order.Status {
			first, second := min(other.Entry, l.order.Entry), max(other.Entry, l.order.Entry)
			return fmt.Errorf("%s has two purchases, entries %d and %d: record one purchase in each file, and give all the files", l.order.File, first, second)
		}
		if other.Status != l.order.Status || other.ref == "" {
			if l.order.ref == "" && other.ref != "" {
				l.order, other = other, l.order
			}
			l.refused = append(l.refused, other)
		}
	}
	return nil
}

// noOrder says that a recording has no purchase, and why perhaps.
func (l *learner) noOrder() error {
	rec := l.recordings[0]
	if len(l.hashes) > 0 {
		x := l.hashes[len(l.hashes)-1]
		return fmt.Errorf("%s has only the hash of its GraphQL document, and no recorded request has the document: give the recording in which the client sends it, "+
			"which it does once to a server that does not know the hash, or configure the gate by hand with `persisted`", x.Name())
	}
	changes := 0
	for _, x := range rec.Exchanges {
		if x.changes() {
			changes++
		}
	}
	return fmt.Errorf("%s has no purchase: none of its %d requests that may change something looks like an order. Record from the cart to the page of thanks, "+
		"with \"Preserve log\" (Chrome) or \"Persist Logs\" (Firefox); or name the request with --order <entry>", rec.File, changes)
}

// chooseOthers finds the order in the other recordings. One that was answered otherwise is a refusal.
func (l *learner) chooseOthers() error {
	for _, rec := range l.recordings[1:] {
		all := l.candidates(rec)
		i := slices.IndexFunc(all, func(c *candidate) bool { return c.shape() == l.order.shape() })
		if i < 0 {
			return fmt.Errorf("%s has no request like %s: record the same purchase at the same shop", rec.File, l.order.Name())
		}
		if same := l.order; all[i].Status == same.Status && (all[i].ref != "") == (same.ref != "") {
			l.again = append(l.again, all[i])
		} else {
			l.refused = append(l.refused, all[i])
		}
	}
	return nil
}

func (l *learner) isProvider(host string) bool {
	return slices.ContainsFunc(providers, func(p string) bool { return host == p || strings.HasSuffix(host, "."+p) })
}

// siteOf returns what hosts of one shop have in common: the host without its subdomains. It is a guess, from
// which nothing is written.
func siteOf(host string) string {
	if net.ParseIP(host) != nil {
		return host
	}
	labels := strings.Split(strings.ToLower(host), ".")
	keep := 2
	if n := len(labels); n > 2 && len(labels[n-1]) == 2 && len(labels[n-2]) <= 3 {
		keep = 3
	}
	return strings.Join(labels[max(0, len(labels)-keep):], ".")
}
