package token

import (
	"errors"

	"github.com/stockgate/stockgate/internal/strictjson"
)

// joseHeader is what the JWS header must say (RFC 7515, 4.1).
type joseHeader struct{ typ, alg, kid string }

func parseHeader(raw []byte) (joseHeader, error) {
	var h joseHeader
	err := strictjson.Read(raw, func(r *strictjson.Reader) error {
		// Others are jwk, jku, x5c …: keys that come with the token are never used.
		return r.OpenObject(strictjson.Members{
			"typ": strictjson.Text(&h.typ),
			"alg": strictjson.Text(&h.alg),
			"kid": strictjson.Text(&h.kid),
			"crit": func(*strictjson.Reader) error {
				// It lists extensions that must be understood; none is (RFC 7515, 4.1.11).
				return errors.New("names extensions that reservation tokens do not have")
			},
		}, "typ", "alg", "kid")
	})
	return h, err
}

func parseClaims(raw []byte) (*Claims, error) {
	c := new(Claims)
	err := strictjson.Read(raw, func(r *strictjson.Reader) error {
		return r.OpenObject(strictjson.Members{
			"iss":     strictjson.Text(&c.Issuer),
			"aud":     strictjson.Text(&c.Audience),
			"sub":     strictjson.Text(&c.Subject),
			"jti":     strictjson.Text(&c.ID),
			"iat":     strictjson.Integer(&c.IssuedAt),
			"exp":     strictjson.Integer(&c.ExpiresAt),
			"ep":      strictjson.Integer(&c.Epoch),
			"sale":    strictjson.Text(&c.Sale),
			"ref":     strictjson.Text(&c.Ref),
			"lines":   func(r *strictjson.Reader) error { return parseLines(r, &c.Lines) },
			"bundles": c.parseBundles,
		}, "iss", "aud", "sub", "jti", "iat", "exp", "ep", "sale", "lines")
	})
	if err != nil {
		return nil, err
	}
	return c, c.check()
}

func (c *Claims) parseBundles(r *strictjson.Reader) error {
	return r.Array(func(int) error {
		var b Bundle
		err := r.OpenObject(strictjson.Members{
			"sku":        strictjson.Text(&b.SKU),
			"components": func(r *strictjson.Reader) error { return parseLines(r, &b.Components) },
		}, "sku", "components")
		c.Bundles = append(c.Bundles, b)
		return err
	})
}

func parseLines(r *strictjson.Reader, into *[]Line) error {
	return r.Array(func(int) error {
		var l Line
		err := r.OpenObject(strictjson.Members{
			"sku":    strictjson.Text(&l.SKU),
			"qty":    strictjson.Integer(&l.Quantity),
			"region": strictjson.Text(&l.Region),
		}, "sku", "qty")
		*into = append(*into, l)
		return err
	})
}

// short keeps a client's input from filling an error message.
func short(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
