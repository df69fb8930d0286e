package judge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/gate/option/operation"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// AsksIP reports whether the gate uses the client's address.
func (j *Judge) AsksIP() bool {
	return j.lists.Any() || j.Challenge != nil || j.reader.Needs().Has(attempt.NeedIP|attempt.NeedJWT)
}

// ReadsHeader reports whether the gate, or the guard before it, reads a header of a request.
func (j *Judge) ReadsHeader(name string) bool {
	return j.reader.ReadsHeader(name) || len(name) == len(refuse.AcceptLanguage) && strings.EqualFold(name, refuse.AcceptLanguage)
}

// Server is the server that the gate belongs to; nil: none.
func (j *Judge) Server() *caddyhttp.Server { return j.server }

// Routes returns the routes of the gate's server that lead to gates.
func (j *Judge) Routes() *guard.Routes { return &j.routes }

// Refuser returns the gate's answers to refusals.
func (j *Judge) Refuser() *refuse.Refuser { return j.refuser }

// Guarded returns what guards need to know of the gate.
func (j *Judge) Guarded() *guard.Gate { return &j.guarded }

// AnyoneCounts reports whether a client may choose by whom a limit counts it: the gate reads
// at least one of the limit's identities, and has verified none of them.
func (j *Judge) AnyoneCounts(per sale.Identities) bool {
	reads := false
	for kind := range per.All {
		values := j.identity(kind)
		if verified(values) {
			return false
		}
		reads = reads || len(values) > 0
	}
	return reads
}

// identity returns where the gate reads an identity; none: it does not.
func (j *Judge) identity(kind string) []string {
	if kind == "buyer" {
		return j.Buyer
	}
	return j.Identities[kind]
}

// Reads reports whether the gate reads an identity at all.
func (j *Judge) Reads(kind string) bool { return len(j.identity(kind)) > 0 }

// MaySell reports whether an attempt at the gate can be one of a sale, by what its configuration says.
func (j *Judge) MaySell(saleID string) bool {
	return !j.OnlyChecks() && j.isOf(saleID)
}

// isOf reports whether an attempt may be one of a sale.
func (j *Judge) isOf(saleID string) bool {
	return len(j.Sale) == 0 || slices.ContainsFunc(j.Sale, func(expr string) bool { return expr == saleID || hasPlaceholder(expr) })
}

// Title names the gate in warnings.
func (j *Judge) Title() string {
	what := "the gate "
	if j.Enters {
		what = "the stockgate_waitlist "
	}
	return what + cmp.Or(j.Name, "without a name")
}

// addressUses lists the options that use the client's address.
func (j *Judge) addressUses() (uses []string) {
	if slices.ContainsFunc(j.Rates, func(r ratelimit.Rate) bool { return readsAddress(r.Key) }) {
		uses = append(uses, "rate")
	}
	for _, kind := range identityKinds {
		if readsAddress(j.Identities[kind]) {
			uses = append(uses, "identity "+kind)
		}
	}
	for _, option := range []struct {
		name string
		uses bool
	}{
		{"deny", len(j.Deny) > 0},
		{"allow", len(j.Allow) > 0},
		{"challenge", j.Challenge != nil},
		{"jwt", len(j.JWT) > 0},
		{"buyer", readsAddress(j.Buyer)},
		{"region", readsAddress(j.Region)},
		{"sale", readsAddress(j.Sale)},
		{"ref", readsAddress(j.Ref)},
		{"idempotency", readsAddress(j.Idempotency)},
		{"one_at_a_time except", len(matchers.ReadingAddress(j.credentials.Exceptions())) > 0},
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
func (j *Judge) FindsSale() bool {
	return !slices.ContainsFunc(j.Sale, func(v string) bool { return !hasPlaceholder(v) })
}

// byClient reports whether a client can set a value to anything.
func byClient(expr string) bool {
	v, err := attempt.Compile(expr)
	return operation.ByClient(expr) || typedIntoCart(expr) || err == nil && v.ByClient()
}

// typedIntoCart reports whether a value is what a guest types into the cart: an e-mail address or a phone
// number that the shop has not verified.
func typedIntoCart(expr string) bool {
	path, ok := strings.CutPrefix(strings.ToLower(expr), "{lookup.")
	return ok && (namesEmail(expr) || strings.Contains(path[strings.LastIndexByte(path, '.')+1:], "phone"))
}

// verified reports whether an identity has a value that the client cannot choose: from an
// authentication, from a bearer token, or the client's address.
func verified(values []string) bool {
	return len(values) > 0 && !slices.ContainsFunc(values, byClient)
}

func (j *Judge) identities() (all [][]string) {
	for _, kind := range identityKinds {
		all = append(all, j.Identities[kind])
	}
	return all
}

// UngatedSites returns warnings about sites that send orders to the gate's upstream without a gate. Call it
// when all handlers of the configuration are provisioned.
func (j *Judge) UngatedSites() []string {
	if j.OnlyChecks() || j.server == nil {
		return nil
	}
	loaded, err := j.ctx.AppIfConfigured("http")
	if err != nil {
		return nil
	}
	http, ok := loaded.(*caddyhttp.App)
	if !ok {
		return nil
	}
	return guard.UngatedSites(&j.guarded, j.Title(), j.server, http.Servers)
}

// warnLoaded logs warnings that need the whole configuration.
func (j *Judge) warnLoaded() {
	if j.InShadow {
		j.log.Warn("this gate is in shadow: it refuses nothing and holds no stock, and only counts what it would have done; remove `shadow` before the sale that it is to protect")
	}
	for _, warning := range j.UngatedSites() {
		j.log.Warn(warning)
	}
	if reads := j.LacksAuthentication(); reads != "" {
		j.log.Warn(reads + " is always empty, because no authentication comes before the gate: add one before the gate, such as basic_auth, or read the buyer elsewhere")
	}
}
