package learn

import (
	"slices"
	"strings"
)

// findTurns lets requests of one session wait for each other where the shop keeps the cart: the cart must not
// change between its lookup and the order.
func (l *learner) findTurns() {
	if l.cart == nil {
		if l.plan.asksBuyer {
			l.turns(l.credentials())
		}
		return
	}
	credentials := l.credentials()
	if l.cart.index >= 0 {
		credentials = append(credentials, pathValue(l.cart.index))
	} else if l.cart.ref.value == "" && l.plan.cartID != "" && len(credentials) > 0 && !strings.Contains(l.cart.lookup, "{jwt.") {
		credentials = append(credentials, "{lookup."+l.plan.cartID+"}")
	}
	if l.order.op == nil && l.cart.index >= 0 {
		credentials = []string{pathValue(l.cart.index)}
	}
	l.turns(credentials)
	if !slices.ContainsFunc(l.plan.gate, func(o option) bool { return strings.HasPrefix(o.text, "outcome") }) {
		l.question("How can the shop be asked whether an order was placed?", "The recording has no later answer that shows the order with its items. So the gate believes the shop's answer to the client, "+
			"which does not say what was in the cart that was sold. `outcome ask` with `lines` compares it (docs/carts.md).", l.outcomeLine())
	}
}

func (l *learner) outcomeLine() string {
	for _, o := range l.plan.gate {
		if strings.HasPrefix(o.text, "confirm") {
			return o.text
		}
	}
	return "confirm"
}

// credentials are those by which the shop knows the session of the order.
func (l *learner) credentials() (all []string) {
	if l.order.Header.Get("Authorization") != "" {
		all = append(all, "{header.Authorization}")
	}
	for _, name := range l.sessionHeaders() {
		all = append(all, "{header."+name+"}")
	}
	for _, name := range l.sessionCookies() {
		all = append(all, "{cookie."+name+"}")
	}
	return all
}

// turns writes one_at_a_time, and the check for the requests that change the cart, unless the gate sees these
// too.
func (l *learner) turns(credentials []string) {
	if len(credentials) == 0 {
		return
	}
	line := "one_at_a_time " + strings.Join(credentials, " ")
	l.plan.add(line, because("its credentials", l.order.Exchange))
	l.question("Are these all the credentials of a session?", "Requests of one session wait for each other, so that the cart does not change while it is sold. Name every credential that the shop accepts for the same cart.", line)
	if l.order.op != nil {
		return
	}
	paths, seen := l.changingPaths()
	if len(paths) == 0 {
		return
	}
	l.plan.changes = []option{{"method POST PUT PATCH DELETE", because("", seen...)}, {"path " + strings.Join(paths, " "), because("", seen...)}, {"not path " + l.orderPaths(), because("", l.order.Exchange)}}
	l.plan.check = []option{{line, "the credentials of the gate"}}
	if l.cart != nil && strings.Contains(line, "{lookup.") {
		l.plan.check = append(l.plan.check, option{"lookup " + l.cart.lookup, because("shows the cart", l.cart.Exchange)})
	}
	l.question("Are these all the requests that change a cart?", "They are those that the recording has. Add the others: removing an item, another quantity, coupons, merging carts at login.", "path "+strings.Join(paths, " "))
}

func (l *learner) orderPaths() string {
	for _, o := range l.plan.matcher {
		if paths, ok := strings.CutPrefix(o.text, "path "); ok {
			return paths
		}
	}
	return "/"
}

// changingPaths are the paths of the shop's requests that may change a cart, and an example of each.
func (l *learner) changingPaths() (paths []string, seen []*Exchange) {
	for _, x := range l.fromShop() {
		path := x.pattern(l.hidden)
		if !x.changes() || l.isOrder(x) || isSigned(x) || slices.Contains(paths, path) || len(paths) == 20 {
			continue
		}
		paths, seen = append(paths, path), append(seen, x)
	}
	return paths, seen[:min(len(seen), 3)]
}
