package gate

import (
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
	"github.com/stockgate/stockgate/caddymodule/operation"
	"github.com/stockgate/stockgate/caddymodule/probe"
	"github.com/stockgate/stockgate/caddymodule/ratelimit"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
)

// AsksIP says whether the gate uses the client's address.
func (g *Gate) AsksIP() bool {
	return g.lists.Any() || g.Challenge != nil || g.reader.Needs().Has(attempt.NeedIP|attempt.NeedJWT)
}

// ReadsHeader says whether the gate reads a header of a request.
func (g *Gate) ReadsHeader(name string) bool { return g.reader.ReadsHeader(name) }

// Server is the server that the gate belongs to; nil: none.
func (g *Gate) Server() *caddyhttp.Server { return g.server }

// Routes returns the routes of the gate's server that lead to gates.
func (g *Gate) Routes() *guard.Routes { return &g.routes }

// Refuser returns the gate's answers to refusals.
func (g *Gate) Refuser() *refuse.Refuser { return g.refuser }

// Probe returns the probe that asks the shop about holds in doubt; nil: they are kept.
func (g *Gate) Probe() *probe.Probe { return g.probe }

// Guarded returns what guards need to know of the gate.
func (g *Gate) Guarded() *guard.Gate { return &g.guarded }

// AnyoneCounts says whether a client may choose by whom a limit counts it: the gate reads
// at least one of the limit's identities, and has verified none of them.
func (g *Gate) AnyoneCounts(per sale.Identities) bool {
	reads := false
	for kind := range per.All {
		values := g.identity(kind)
		if verified(values) {
			return false
		}
		reads = reads || len(values) > 0
	}
	return reads
}

// identity returns where the gate reads an identity; none: it does not.
func (g *Gate) identity(kind string) []string {
	if kind == "buyer" {
		return g.Buyer
	}
	return g.Identities[kind]
}

// Reads says whether the gate reads an identity at all.
func (g *Gate) Reads(kind string) bool { return len(g.identity(kind)) > 0 }

// MaySell says whether an attempt at the gate can be one of a sale, by what its configuration says.
func (g *Gate) MaySell(saleID string) bool {
	return !g.Check && (len(g.Sale) == 0 || slices.ContainsFunc(g.Sale, func(expr string) bool { return expr == saleID || hasPlaceholder(expr) }))
}

// Title names the gate in warnings.
func (g *Gate) Title() string {
	if g.Name == "" {
		return "the gate without a name"
	}
	return "the gate " + g.Name
}

// addressUses lists the options that use the client's address.
func (g *Gate) addressUses() (uses []string) {
	if slices.ContainsFunc(g.Rates, func(r ratelimit.Rate) bool { return readsAddress(r.Key) }) {
		uses = append(uses, "rate")
	}
	for _, kind := range identityKinds {
		if readsAddress(g.Identities[kind]) {
			uses = append(uses, "identity "+kind)
		}
	}
	for _, option := range []struct {
		name string
		uses bool
	}{
		{"deny", len(g.Deny) > 0},
		{"allow", len(g.Allow) > 0},
		{"challenge", g.Challenge != nil},
		{"jwt", g.JWT != nil},
		{"buyer", readsAddress(g.Buyer)},
		{"region", readsAddress(g.Region)},
		{"sale", readsAddress(g.Sale)},
		{"ref", readsAddress(g.Ref)},
		{"idempotency", readsAddress(g.Idempotency)},
		{"one_at_a_time except", len(matchers.ReadingAddress(g.credentials.Exceptions())) > 0},
	} {
		if option.uses {
			uses = append(uses, option.name)
		}
	}
	return uses
}

// readsAddress reports whether one of these values has the client's address.
func readsAddress(values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "client_ip}") })
}

// FindsSale reports whether the gate may find the sale of an attempt by its items, because no value
// of `sale` is a constant.
func (g *Gate) FindsSale() bool {
	return !slices.ContainsFunc(g.Sale, func(v string) bool { return !hasPlaceholder(v) })
}

// byClient says whether a client can set a value to anything.
func byClient(expr string) bool {
	v, err := attempt.Compile(expr)
	return operation.ByClient(expr) || err == nil && v.ByClient()
}

// verified says whether an identity has a value that the client cannot choose: from an
// authentication, from a bearer token, or the client's address.
func verified(values []string) bool {
	return len(values) > 0 && !slices.ContainsFunc(values, byClient)
}

// userPlaceholder begins the placeholders that only an authentication handler sets.
const userPlaceholder = "{http.auth.user."

// LacksAuthentication returns the value that the gate reads from an authentication although its
// server has none, so that it is always empty; "" if there is no such value. Call it when all
// handlers of the configuration are provisioned.
func (g *Gate) LacksAuthentication() string {
	if g.server == nil {
		return ""
	}
	reads := ""
	for _, values := range append([][]string{g.Buyer}, g.identities()...) {
		if at := slices.IndexFunc(values, func(v string) bool { return strings.Contains(v, userPlaceholder) }); at >= 0 && reads == "" {
			reads = values[at]
		}
	}
	if reads == "" || authenticates(g.server.Routes) {
		return ""
	}
	for _, named := range g.server.NamedRoutes {
		if named != nil && authenticates(caddyhttp.RouteList{*named}) {
			return ""
		}
	}
	return reads
}

func (g *Gate) identities() (all [][]string) {
	for _, kind := range identityKinds {
		all = append(all, g.Identities[kind])
	}
	return all
}

// authenticates tells whether a handler in these routes can set who the user is.
func authenticates(routes caddyhttp.RouteList) bool {
	for i := range routes {
		for _, h := range routes[i].Handlers {
			switch h := h.(type) {
			case caddyauth.Authentication, *caddyauth.Authentication:
				return true
			case *caddyhttp.Subroute:
				if authenticates(h.Routes) {
					return true
				}
			}
		}
	}
	return false
}

// warnLoaded logs what is found when the whole configuration is known.
func (g *Gate) warnLoaded() {
	if g.Shadow {
		g.log.Warn("this gate is in shadow: it refuses nothing and holds no stock, and only counts what it would have done; remove `shadow` before the sale that it is to protect")
	}
	if reads := g.LacksAuthentication(); reads != "" {
		g.log.Warn(reads + " is always empty, because the server has no authentication: add one before the gate, such as basic_auth, or read the buyer elsewhere")
	}
}
