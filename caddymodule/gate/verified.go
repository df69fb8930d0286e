package gate

import (
	"slices"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/sale"
)

// AnyoneCounts says that a client may choose by whom a limit counts it: the gate reads one
// of the limit's identities, and has verified none of them.
func (g *Gate) AnyoneCounts(per sale.Identities) bool {
	reads := false
	for kind := range per.All {
		values := g.Identities[kind]
		if kind == "buyer" {
			values = g.Buyer
		}
		if verified(values) {
			return false
		}
		reads = reads || len(values) > 0
	}
	return reads
}

// byClient says that a client can set a value to anything.
func byClient(expr string) bool {
	v, err := attempt.Compile(expr)
	return err == nil && v.ByClient()
}

// verified says that an identity has a value which no client chooses: of an
// authentication, of a bearer token, or the client's address.
func verified(values []string) bool {
	return len(values) > 0 && !slices.ContainsFunc(values, byClient)
}
