package webhook

import "strings"

// Issuer is where a provider has the certificates with whose keys it signs.
type Issuer struct {
	// Host has them, over https.
	Host string
	// Name is the name that a certificate must have.
	Name string
}

// PayPalLive and PayPalSandbox are PayPal's.
var (
	PayPalLive    = Issuer{"api.paypal.com", "messageverificationcerts.paypal.com"}
	PayPalSandbox = Issuer{"api.sandbox.paypal.com", "messageverificationcerts.sandbox.paypal.com"}
)

// has reports whether a URL is one of a certificate, byte by byte: what no parser of URLs reads, none reads in
// another way.
func (i Issuer) has(url string) bool {
	name, ok := strings.CutPrefix(url, "https://"+i.Host+"/v1/notifications/certs/")
	return ok && payPalName.MatchString(name)
}
