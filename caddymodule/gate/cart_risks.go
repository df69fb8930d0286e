package gate

import (
	"fmt"
	"slices"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
)

// A gate with a lookup may reserve another cart than the shop sells.
const (
	unlockedCart = "a cart may change between its lookup and the order, and what is sold is then not what was reserved: " +
		"let the requests of a session wait for each other, as in `one_at_a_time {header.Authorization} {cookie.session}`"
	uncheckedCart = "one_at_a_time lets orders wait for each other, but no stockgate_check with the same credential makes the requests wait that change the cart: " +
		"add one, such as `stockgate_check @changes turns { one_at_a_time %s }`"
)

// cartRisk returns a warning about a cart that may change between its lookup and the order; empty: there is
// none. all are the judges of the configuration.
func (g *Gate) cartRisk(all []*judge.Judge) string {
	switch {
	case g.Lookup == nil:
	case g.OneAtATime == nil:
		return unlockedCart
	case !g.Options.Any() && !slices.ContainsFunc(all, g.waitsFor):
		if looked := g.terms.LookedUp(); len(looked) > 0 {
			return fmt.Sprintf(uncheckedCart, looked[0]) + ", with a `lookup` whose answer has the same id there"
		}
		return fmt.Sprintf(uncheckedCart, g.OneAtATime.Credentials[0])
	}
	return ""
}

// waitsFor reports whether requests at another judge of the server wait for the orders of their session, or, where
// the gate looks its id up, of their cart.
func (g *Gate) waitsFor(other *judge.Judge) bool {
	wanted := g.terms.LookedUp()
	if len(wanted) == 0 {
		wanted = g.OneAtATime.Credentials
	}
	return other != &g.Judge && other.Server() == g.Server() && other.OneAtATime != nil &&
		slices.ContainsFunc(other.OneAtATime.Credentials, func(c string) bool { return slices.Contains(wanted, c) })
}
