package token_test

import (
	"errors"
	"net/http"

	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/token"
)

// An order route that sells only what is held.
func Example() {
	keys, err := token.NewRemoteKeys(token.RemoteOptions{URL: "https://shop.example.com/.well-known/jwks.json"})
	if err != nil {
		panic(err)
	}
	verifier, err := token.NewVerifier(token.Options{Remote: keys, Audience: "order-backend"})
	if err != nil {
		panic(err)
	}
	http.HandleFunc("POST /api/order", func(w http.ResponseWriter, r *http.Request) {
		signed, err := token.FromRequest(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		order := token.Expect{
			Subject: r.Header.Get("X-User-Id"), // an empty one is refused
			Lines:   []sale.Line{{SKU: r.FormValue("sku"), Quantity: 1}},
		}
		claims, err := verifier.VerifyContext(r.Context(), signed, order)
		if errors.Is(err, token.ErrExpired) {
			// A genuine token that came late: an id that has an order keeps it.
			// Look claims.ID up here, before refusing.
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		// INSERT the order with claims.ID under a UNIQUE constraint; on a
		// conflict answer what was answered the first time.
		_ = claims.ID
	})
}
