package main

import (
	"testing"

	"github.com/stockgate/stockgate/token"
)

// An answer that comes after the token has expired is compared like any other; a token of
// another key is not the gate's.
func TestClaimsOfLateAnswers(t *testing.T) {
	verifier, err := token.NewVerifier(token.Options{Secret: secret, Audience: "order-backend"})
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{verifier}
	for name, test := range map[string]struct {
		key   string
		fails bool
	}{"of the gate": {secret, false}, "of another key": {"another secret of thirty-two bytes", true}} {
		t.Run(name, func(t *testing.T) {
			key, err := token.ParseKey(token.KindHMAC, test.key)
			if err != nil {
				t.Fatal(err)
			}
			signer, err := token.NewSigner("", "order-backend", key)
			if err != nil {
				t.Fatal(err)
			}
			expired := token.Claims{
				ID: "019aa5f0-0000-7000-8000-000000000001", Subject: "ann", IssuedAt: 1, ExpiresAt: 2, Epoch: 1, Sale: "s",
				Lines: []token.Line{{SKU: "tea", Quantity: 1}},
			}
			signed, err := signer.Sign(expired)
			if err != nil {
				t.Fatal(err)
			}
			claims, err := g.claims(&answer{Token: signed})
			if (err != nil) != test.fails || err == nil && claims.Subject != "ann" {
				t.Errorf("claims %+v, error %v", claims, err)
			}
		})
	}
}
