package attempt

import (
	"errors"
	"strings"

	"github.com/stockgate/stockgate/internal/sale"
)

// Bearer says where a request carries the shop's bearer token. The token's claims are
// the values {jwt.C}.
type Bearer struct {
	// Cookie is the cookie that holds the token. Empty: it is in the header
	// Authorization (RFC 6750, section 2.1).
	Cookie string
}

// bearer compiles where the token is found.
func (c *compiler) bearer(b *Bearer) error {
	reads := c.reader.needs.Has(NeedJWT)
	switch {
	case b == nil && reads:
		return errNoBearer
	case b == nil:
		return nil
	case !reads:
		return errNoClaim
	}
	source := Value{kind: Header, name: "Authorization"}
	if b.Cookie != "" {
		if !isToken(b.Cookie) {
			return errCookieName
		}
		source = Value{kind: Cookie, name: b.Cookie}
	}
	in, err := c.value(source)
	c.reader.bearer, c.reader.bearerCookie = in, b.Cookie != ""
	return err
}

var (
	errNoBearer   = errors.New("{jwt.…}: say how the bearer token is verified, such as jwt https://id.example.com/jwks.json")
	errNoClaim    = errors.New("jwt: no value reads a claim: write buyer {jwt.sub}, or leave jwt out")
	errCookieName = errors.New("jwt: this is not a cookie's name")
)

// readClaims takes the claims that are sources from the request's token, which
// Env verifies. A request without a token has none. The refusal is malformed if
// it is not clear which token the request has or what it says; otherwise it is
// Env's.
func (rd *Reader) readClaims(sc *scratch, env *Env) *sale.Refusal {
	if !rd.needs.Has(NeedJWT) {
		return nil
	}
	token, f := rd.token(sc.got[rd.bearer.slot].text)
	if f.bad() {
		return f.refusal()
	}
	if token == "" || env.Claims == nil {
		return nil
	}
	claims, refusal := env.Claims(token)
	if refusal != nil {
		return refusal
	}
	s := scanner{data: claims, scratch: sc}
	if !s.document(rd.claims, true) {
		if s.fault.input == "the body" {
			s.fault.input = "the claims of the bearer token"
		}
		return s.fault.refusal()
	}
	return nil
}

// token is the bearer token in a header's or cookie's value; empty: there is
// none, or the credentials are of another scheme.
func (rd *Reader) token(value string) (string, fault) {
	if rd.bearerCookie {
		return value, fault{}
	}
	const scheme = "Bearer"
	value = strings.Trim(value, " \t")
	if len(value) < len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return "", fault{}
	}
	token := value[len(scheme):]
	if token != "" && token[0] != ' ' {
		if isToken(token[:1]) {
			return "", fault{} // a scheme with a longer name
		}
		return "", fault{rd.bearer.label, "one space stands between Bearer and the token"}
	}
	if token = strings.TrimLeft(token, " "); strings.ContainsAny(token, " \t,") {
		return "", fault{rd.bearer.label, "it holds more than one token"}
	}
	return token, fault{}
}
