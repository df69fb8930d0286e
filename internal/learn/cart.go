package learn

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// cart is the answer that shows what an order is about, where the order does not say it.
type cart struct {
	*Exchange
	tree   any
	lines  *linesFrom
	lookup string // the option's value: [POST] <url> [<body>]

	ref     requestValue // of the order, that names the cart; the zero value: none does
	index   int          // of the segment of the order's path that is the ref; below 0: none is
	dropped []string     // parameters that the lookup does not have

	names func(text string) string // the placeholder of a value by which the question names its subject; empty: it does not
}

// lookUpCart finds the last answer before the order that shows a cart, and that the gate can ask for with
// what the order request carries.
func (l *learner) lookUpCart() error {
	var unusable *Exchange
	for _, x := range slices.Backward(l.fromShop()) {
		if x.Entry >= l.order.Entry || x.Status != 200 {
			continue
		}
		c := &cart{Exchange: x, tree: x.answerTree(), index: -1}
		c.names = func(text string) string { return c.named(l.valueOfOrder(text)) }
		if c.lines = findLines(c.tree); c.lines == nil || !c.lines.list || c.lines.quantity == "" || !looksLikeCart(c) {
			continue
		}
		if !l.asks(c) {
			unusable = x
			continue
		}
		l.cart = c
		break
	}
	switch {
	case l.cart == nil && unusable != nil:
		return fmt.Errorf("%s names no item, and the cart in the answer of %s cannot be asked for with what the order request carries: configure the gate by hand, see docs/carts.md",
			l.order.Name(), unusable.Name())
	case l.cart == nil:
		return fmt.Errorf("%s names no item, and no earlier answer in JSON shows a cart with items and quantities. Record again, and look at the cart before you order; "+
			"if the shop shows carts as pages only, give it a path that answers with JSON, see docs/carts.md", l.order.Name())
	}
	l.plan.lines = l.cart.lines
	l.plan.add("lookup "+l.cart.lookup, because("shows the cart", l.cart.Exchange))
	l.plan.add(l.cart.lines.option("lookup"), because("its items", l.cart.Exchange))
	l.question("Does this answer always show the cart that will be ordered?", "The order request names no item, so the gate asks the shop in the buyer's name what is in the cart, by the last request in the recording that showed it.",
		"lookup "+l.cart.lookup)
	l.askDropped(l.cart, "lookup "+l.cart.lookup)
	return nil
}

// looksLikeCart reports whether an answer with lines is about a cart, and not about products.
func looksLikeCart(c *cart) bool {
	where := folded(c.URL.Path + " " + c.lines.array)
	if c.Method == "POST" {
		where += folded(string(c.Body))
	}
	for _, word := range []string{"cart", "basket", "checkout", "order", "bag"} {
		if strings.Contains(where, word) {
			return true
		}
	}
	return false
}

// asks writes the lookup, if the gate can ask that question.
func (l *learner) asks(c *cart) bool {
	if !l.hidden.path(c.lines.item) || !l.hidden.path(c.lines.quantity) || c.lines.array != "" && !l.hidden.path(c.lines.array) {
		return false
	}
	switch c.Method {
	case "GET":
		if strings.Contains(c.URL.Query().Get("query"), "{") || c.URL.Query().Get("extensions") != "" {
			return false // the document of GraphQL, which only a POST can have here
		}
		path, ok := l.pathAsked(c)
		c.lookup = "GET http://" + shopAddress + path
		return ok
	case "POST":
		body, ok := l.document(c)
		c.lookup = "POST http://" + shopAddress + c.pattern(l.hidden) + " `" + body + "`"
		return ok && !strings.Contains(c.pattern(l.hidden), "*")
	}
	return false
}

var graphQLComment = regexp.MustCompile(`#[^\n\r]*`)

// squeezed writes a document on one line, without comments, and with a space behind each brace: the gate would read
// {ref} as a placeholder, and Caddy {$NAME}.
func squeezed(document string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(graphQLComment.ReplaceAllString(document, ""), "{", "{ ")), " ")
}

// cartID returns the path in the cart's answer of its own name, which stays while its items change.
func (l *learner) cartID() string {
	best, rank := "", 100
	for _, leaf := range leavesOf(l.cart.tree) {
		if slices.ContainsFunc(leaf.path, isNumber) || !l.hidden.path(leaf.dotted()) || leaf.text == "true" || leaf.text == "false" {
			continue
		}
		i := slices.Index([]string{"id", "cartid", "code", "number", "cartnumber", "basketid", "checkoutid", "uuid"}, folded(leaf.name()))
		if i >= 0 && !aboutPerson(leaf) && i+10*len(leaf.path) < rank {
			best, rank = leaf.dotted(), i+10*len(leaf.path)
		}
	}
	return best
}

func aboutPerson(l leaf) bool {
	for _, part := range l.path[:len(l.path)-1] {
		if slices.Contains([]string{"customer", "user", "buyer", "account", "member", "owner", "region", "channel", "currency", "shipping", "payment"}, folded(part)) {
			return true
		}
	}
	return false
}

// pathValue reads a segment of the path.
func pathValue(index int) string { return "{path." + strconv.Itoa(index) + "}" }
