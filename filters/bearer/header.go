package bearer

import (
	"encoding/base64"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// maxKid is how long a key's id may be, in bytes.
const maxKid = 256

// b64 refuses what the usual decoder ignores: with other last characters that decode to
// the same bytes, one token would have many spellings.
var b64 = base64.RawURLEncoding.Strict()

// header is what a token says of itself (RFC 7515, section 4.1): none of it is trusted,
// it only selects which of our keys to try.
type header struct {
	alg jose.SignatureAlgorithm
	kid string
}

// readHeader reads the header of a token, before anything is verified.
func readHeader(token string) (header, error) {
	first, rest, ok := strings.Cut(token, ".")
	payload, signature, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || first == "" || payload == "" || strings.Contains(signature, ".") {
		return header{}, ErrMalformed
	}
	// alg none has no signature.
	for _, part := range []string{first, payload, signature} {
		if strings.ContainsAny(part, "\r\n") { // which the decoder passes over
			return header{}, ErrMalformed
		}
	}
	raw, err := b64.DecodeString(first)
	if err != nil {
		return header{}, ErrMalformed
	}
	if _, err := b64.DecodeString(signature); err != nil {
		return header{}, ErrMalformed
	}
	// This decoder takes names exactly as they are, and none twice.
	var h struct {
		Alg  string          `json:"alg"`
		Kid  *string         `json:"kid"`
		Typ  string          `json:"typ"`
		Crit json.RawMessage `json:"crit"`
		B64  json.RawMessage `json:"b64"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return header{}, ErrMalformed
	}
	// crit names extensions that must be understood, and none is; b64 is one that
	// a JWT may not have (RFC 7797, section 7).
	if h.Crit != nil || h.B64 != nil {
		return header{}, ErrMalformed
	}
	if !isAccessToken(h.Typ) {
		return header{}, ErrType
	}
	out := header{alg: jose.SignatureAlgorithm(h.Alg)}
	if h.Kid != nil {
		if *h.Kid == "" || len(*h.Kid) > maxKid {
			return header{}, ErrUnknownKey
		}
		out.kid = *h.Kid
	}
	return out, nil
}

// isAccessToken tells by typ whether a JWT may be a bearer token: one that says
// nothing, JWT, or at+jwt (RFC 9068). A reservation token, a logout token or anything
// else that the same keys sign is not accepted (RFC 8725, section 3.11).
func isAccessToken(typ string) bool {
	if len(typ) > len("application/") && strings.EqualFold(typ[:len("application/")], "application/") {
		typ = typ[len("application/"):]
	}
	return typ == "" || strings.EqualFold(typ, "JWT") || strings.EqualFold(typ, "at+jwt")
}
