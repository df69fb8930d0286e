package gate

import (
	"slices"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/sale"
)

// AnyoneCounts says whether a client may choose by whom a limit counts it: the gate reads
// at least one of the limit's identities, and has verified none of them.
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

// byClient says whether a client can set a value to anything.
func byClient(expr string) bool {
	v, err := attempt.Compile(expr)
	return err == nil && v.ByClient()
}

// verified says whether an identity has a value that the client cannot choose: from an
// authentication, from a bearer token, or the client's address.
func verified(values []string) bool {
	return len(values) > 0 && !slices.ContainsFunc(values, byClient)
}
