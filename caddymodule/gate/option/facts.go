package option

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/gate/option/operation"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/internal/sale"
)

// AnyoneCounts reports whether a client may choose by whom a limit counts it: the gate reads
// at least one of the limit's identities, and has verified none of them.
func (s *Setup) AnyoneCounts(per sale.Identities) bool {
	reads := false
	for kind := range per.All {
		values := s.identity(kind)
		if verified(values) {
			return false
		}
		reads = reads || len(values) > 0
	}
	return reads
}

// identity returns where the gate reads an identity; none: it does not.
func (s *Setup) identity(kind string) []string {
	if kind == "buyer" {
		return s.Buyer
	}
	return s.Identities[kind]
}

// Reads reports whether the gate reads an identity at all.
func (s *Setup) Reads(kind string) bool { return len(s.identity(kind)) > 0 }

// MaySell reports whether an attempt at the gate can be one of a sale, by what its configuration says.
func (s *Setup) MaySell(saleID string) bool {
	return !s.OnlyChecks() && s.IsOf(saleID)
}

// IsOf reports whether an attempt may be one of a sale.
func (s *Setup) IsOf(saleID string) bool {
	return len(s.Sale) == 0 || slices.ContainsFunc(s.Sale, func(expr string) bool { return expr == saleID || hasPlaceholder(expr) })
}

// Title names the gate in warnings.
func (s *Setup) Title() string {
	what := "the gate "
	if s.Enters {
		what = "the stockgate_waitlist "
	}
	return what + cmp.Or(s.Name, "without a name")
}

// AddressUses lists the options that use the client's address.
func (f *Filters) AddressUses(s *Setup) (uses []string) {
	if slices.ContainsFunc(s.Rates, func(r ratelimit.Rate) bool { return readsAddress(r.Key) }) {
		uses = append(uses, "rate")
	}
	for _, kind := range identityKinds {
		if readsAddress(s.Identities[kind]) {
			uses = append(uses, "identity "+kind)
		}
	}
	for _, option := range []struct {
		name string
		uses bool
	}{
		{"deny", len(s.Deny) > 0},
		{"allow", len(s.Allow) > 0},
		{"challenge", s.Challenge != nil},
		{"jwt", len(s.JWT) > 0},
		{"buyer", readsAddress(s.Buyer)},
		{"region", readsAddress(s.Region)},
		{"sale", readsAddress(s.Sale)},
		{"ref", readsAddress(s.Ref)},
		{"idempotency", readsAddress(s.Idempotency)},
		{"one_at_a_time except", len(matchers.ReadingAddress(f.Credentials.Exceptions())) > 0},
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
func (s *Setup) FindsSale() bool {
	return !slices.ContainsFunc(s.Sale, func(v string) bool { return !hasPlaceholder(v) })
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

// userPlaceholder begins the placeholders that only an authentication handler sets.
const userPlaceholder = "{http.auth.user."

// ReadsUser returns the first value of a person that an authentication sets; empty: there is none.
func (s *Setup) ReadsUser() string {
	for _, kind := range append([]string{"buyer"}, identityKinds...) {
		for _, value := range s.identity(kind) {
			if strings.Contains(value, userPlaceholder) {
				return value
			}
		}
	}
	return ""
}
