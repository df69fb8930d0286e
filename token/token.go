// Package token makes and checks reservation tokens: the signed proof that the
// stock for one order was held when the request was forwarded.
//
// The edge signs ([NewSigner], [Signer.Sign]); any Go backend verifies ([NewVerifier],
// [Verifier.Verify]) without a network call, because the token is a JWT (RFC 7519, JWS
// compact form) and the edge publishes its public keys as a JWKS. Header: typ
// "stockgate+jwt", alg EdDSA (RFC 8037) or HS256, kid the RFC 7638 thumbprint of the key.
// Claims: see [Claims]. There is no nbf, so a wrong clock does not refuse buyers.
//
// What a valid token proves: the stock was held when it was issued, and the
// hold does not expire before exp. The backend must:
//
//   - compare the lines and the buyer with the order that it is about to write ([Expect]);
//   - keep the id (jti) unique and answer a repeated id like the first time, never with a 4xx, because a proxy may send a request twice;
//   - never sell on an id that it has refused or released.
package token

import (
	"fmt"
	"net/http"
	"strings"
)

const (
	// Header is the request header that carries the token to the backend.
	Header = "Stockgate-Token"
	// Type is the typ of the JWS header. It keeps other JWTs that are signed with the
	// same key from being accepted as reservations (RFC 8725, 3.11).
	Type = "stockgate+jwt"
	// MaxSize is the largest size of a token in bytes: it must fit into the header
	// limits of common servers, beside cookies.
	MaxSize = 4096
	// DefaultIssuer is the issuer where none is configured.
	DefaultIssuer = "stockgate"
)

// The values of alg.
const (
	EdDSA = "EdDSA"
	HS256 = "HS256"
)

// Claims are the claims of a token.
type Claims struct {
	// Issuer and Audience are set by the Signer, and checked by the Verifier.
	Issuer   string `json:"iss"`
	Audience string `json:"aud"`
	// Subject is the buyer.
	Subject string `json:"sub"`
	// ID is the reservation id (UUIDv7).
	ID string `json:"jti"`
	// IssuedAt and ExpiresAt are Unix seconds, rounded down. The hold outlives
	// ExpiresAt by a margin.
	IssuedAt  int64 `json:"iat"`
	ExpiresAt int64 `json:"exp"`
	// Epoch is the epoch of the shard that holds the stock.
	Epoch int64 `json:"ep"`
	// Sale is the id of the sale.
	Sale string `json:"sale"`
	// Ref is the shop's own name of the order or cart; empty: none was given.
	Ref string `json:"ref,omitempty"`
	// Lines is what is held, as the buyer ordered it. A line without a region holds an item
	// whose stock is not split by region.
	Lines []Line `json:"lines"`
	// Bundles has the components of each line that names a bundle; nil: no line does.
	Bundles []Bundle `json:"bundles,omitempty"`
}

// Held returns the units that are held of each stock cell: Lines, with the components of bundles in
// the place of these.
func (c *Claims) Held() []Line { return Held(c.Lines, c.Bundles) }

// FromRequest returns the token that a request carries, unchecked: pass it to
// [Verifier.Verify]. It fails with [ErrMissing] or [ErrRepeated].
func FromRequest(r *http.Request) (string, error) {
	switch values := r.Header.Values(Header); len(values) {
	case 0:
		return "", fmt.Errorf("%w: no %s header; is this route behind the gate, and does every proxy between pass the header on?", ErrMissing, Header)
	case 1:
		if values[0] == "" {
			return "", fmt.Errorf("%w: the %s header is empty", ErrMissing, Header)
		}
		if strings.Contains(values[0], ",") {
			return "", fmt.Errorf("%w: a proxy has joined several %s headers", ErrRepeated, Header)
		}
		return values[0], nil
	default:
		return "", fmt.Errorf("%w: %d %s headers where one is allowed", ErrRepeated, len(values), Header)
	}
}
