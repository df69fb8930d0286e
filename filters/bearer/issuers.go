package bearer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"
)

// Issuers verifies the tokens of several issuers. The iss of a token selects its Verifier, so that no key of
// one issuer ever verifies a token of another.
type Issuers []*Verifier

// NewIssuers checks that several verifiers can be told apart. One alone may accept any issuer.
func NewIssuers(all ...*Verifier) (Issuers, error) {
	known := make(map[string]bool)
	for _, v := range all {
		switch {
		case len(all) == 1:
		case v.issuer == "":
			return nil, errors.New("of several issuers, one has no name: the iss of a token selects the keys, so write `issuer NAME` in the block of each")
		case known[v.issuer]:
			return nil, fmt.Errorf("two have the issuer %s: the iss of a token selects the keys, so write each issuer once; several keys of one issuer are published as a JWKS", v.issuer)
		}
		known[v.issuer] = true
	}
	return all, nil
}

// VerifyAt is [Verifier.VerifyAt] by the verifier of the token's issuer.
func (s Issuers) VerifyAt(ctx context.Context, token string, limit Brake, at time.Time) ([]byte, error) {
	if len(s) == 1 {
		return s[0].VerifyAt(ctx, token, limit, at)
	}
	if err := checkShape(token); err != nil {
		return nil, err
	}
	id := sha256.Sum256([]byte(token))
	v, err := s.of(token, id)
	if err != nil {
		return nil, err
	}
	return v.verify(ctx, token, id, limit, at)
}

// of returns the verifier that has seen a token before, or the one of its issuer. Nothing that the token says is
// trusted: the verifier compares iss again when the signature fits.
func (s Issuers) of(token string, id digest) (*Verifier, error) {
	for _, v := range s {
		if _, seen := v.known.get(id); seen {
			return v, nil
		}
	}
	issuer, err := issuerOf(token)
	if err != nil {
		return nil, err
	}
	for _, v := range s {
		if v.issuer == issuer {
			return v, nil
		}
	}
	return nil, ErrIssuer
}

// issuerOf reads the iss of a token that is not verified.
func issuerOf(token string) (string, error) {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	raw, err := b64.DecodeString(payload)
	if err != nil {
		return "", ErrMalformed
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return "", ErrMalformed
	}
	return c.Issuer, nil
}
