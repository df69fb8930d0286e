package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/filters/attempt"
)

// A gate with a lookup may reserve another cart than the shop sells.
const (
	otherCart = "the path %s names a cart, and the lookup does not ask for that one: a client can have one cart looked up and order another; " +
		"read its name with `ref {path.%d}`, and name the cart by {ref} in the URL or the body of the lookup"
	unlockedCart = "a cart may change between its lookup and the order, and what is sold is then not what was reserved: " +
		"let the requests of a session wait for each other, as in `one_at_a_time {header.Authorization} {cookie.session}`"
	uncheckedCart = "one_at_a_time lets orders wait for each other, but no stockgate_check with the same credential makes the requests wait that change the cart: " +
		"add one, such as `stockgate_check @changes turns { one_at_a_time %s }`"
	responseToCart = "`outcome response` believes the shop's answer to the client, and the shop may have sold another cart than the one that was looked up: " +
		"ask the shop with `outcome ask` and `lines`, which compares them"
)

// cartRisk returns a warning about a cart that may change between its lookup and the order; empty: there is
// none. all are the judges of the configuration.
func (g *Gate) cartRisk(all []*judge.Judge) string {
	switch {
	case g.Lookup == nil:
	case g.OneAtATime == nil:
		return unlockedCart
	case !g.Options.Any() && !slices.ContainsFunc(all, g.waitsFor):
		if looked := g.lookedUp(); len(looked) > 0 {
			return fmt.Sprintf(uncheckedCart, looked[0]) + ", with a `lookup` whose answer has the same id there"
		}
		return fmt.Sprintf(uncheckedCart, g.OneAtATime.Credentials[0])
	}
	return ""
}

// waitsFor reports whether requests at another judge of the server wait for the orders of their session, or, where
// the gate looks its id up, of their cart.
func (g *Gate) waitsFor(other *judge.Judge) bool {
	wanted := g.lookedUp()
	if len(wanted) == 0 {
		wanted = g.OneAtATime.Credentials
	}
	return other != &g.Judge && other.Server() == g.Server() && other.OneAtATime != nil &&
		slices.ContainsFunc(other.OneAtATime.Credentials, func(c string) bool { return slices.Contains(wanted, c) })
}

// lookedUp returns the credentials that the shop tells.
func (g *Gate) lookedUp() (credentials []string) {
	for _, expr := range g.OneAtATime.Credentials {
		if v, err := attempt.Compile(expr); err == nil && v.Kind() == attempt.Lookup {
			credentials = append(credentials, expr)
		}
	}
	return credentials
}

// otherCarts returns warnings about the patterns of paths that name a cart of which the lookup does not know.
func (g *Gate) otherCarts() (risks []string) {
	if g.Lookup == nil {
		return nil
	}
	for _, pattern := range g.Paths() {
		if at, ok := namedSegment(pattern); ok && !g.looksUp(at) {
			risks = append(risks, fmt.Sprintf(otherCart, pattern, at))
		}
	}
	return risks
}

// namedSegment returns the last segment of a pattern that may be anything and is not its end.
func namedSegment(pattern string) (index int, ok bool) {
	segments := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	for at, segment := range slices.Backward(segments[:len(segments)-1]) {
		if segment == "*" {
			return at, true
		}
	}
	return 0, false
}

// looksUp reports whether the lookup asks for what a segment of the path names.
func (g *Gate) looksUp(segment int) bool {
	return strings.Contains(g.Lookup.URL+g.Lookup.Body, "{ref}") && slices.ContainsFunc(g.Ref, func(expr string) bool {
		v, err := attempt.Compile(expr)
		return err == nil && v.Kind() == attempt.Path && v.Index() == segment
	})
}
