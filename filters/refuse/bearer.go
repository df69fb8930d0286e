package refuse

import "github.com/stockgate/stockgate/internal/sale"

// bearerAlone asks for a token where the request has none.
var bearerAlone = []string{"Bearer"}

// authenticate is the value of WWW-Authenticate (RFC 6750, section 3). The detail of a
// refusal never has quotes.
func authenticate(no *sale.Refusal) []string {
	if no.Reason != sale.NoBuyer || no.Detail == "" {
		return bearerAlone
	}
	return []string{`Bearer error="invalid_token", error_description="` + no.Detail + `"`}
}
