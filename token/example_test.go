package token_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/token"
)

// orders stands for a table with a UNIQUE column for the reservation.
type orders struct {
	mu    sync.Mutex
	taken map[string]bool
}

// insert writes the order of a reservation; false: there was one.
func (o *orders) insert(reservation string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.taken[reservation]
	o.taken[reservation] = true
	return !known
}

// has reports whether there is an order of a reservation.
func (o *orders) has(reservation string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.taken[reservation]
}

// orderRoute is a shop's order route that sells only what is held.
func orderRoute(verifier *token.Verifier, table *orders) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		signed, err := token.FromRequest(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		claims, err := verifier.VerifyContext(r.Context(), signed, token.Expect{
			Subject: r.Header.Get("X-User-Id"), // from the session; an empty one matches no token
			Lines:   []token.Line{{SKU: r.FormValue("sku"), Quantity: 1}},
		})
		// A genuine token that comes late: an id that has an order keeps its answer.
		late := errors.Is(err, token.ErrExpired)
		if err != nil && (!late || !table.has(claims.ID)) {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		table.insert(claims.ID) // the same id again is answered as the first time
		w.WriteHeader(http.StatusCreated)
	}
}

// A shop checks the tokens of an edge. Here the edge is a key and the server that publishes
// its public half; in production it is Caddy, and the shop has only the URL of the key set.
func Example() {
	key, _, err := token.GenerateEd25519()
	if err != nil {
		panic(err)
	}
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		public, _ := key.PublicJWK()
		set, err := token.JWKS(public)
		if err != nil {
			panic(err)
		}
		_, _ = w.Write(set)
	}))
	defer edge.Close()
	signer, err := token.NewSigner("", "order-backend", key)
	if err != nil {
		panic(err)
	}
	now := time.Now()
	signed, err := signer.Sign(token.Claims{
		Subject: "alice", ID: "019a7d3e-5b1c-7f6e-9d5a-3f0d6f6b2c11", Sale: "double11", Epoch: 1,
		IssuedAt: now.Unix(), ExpiresAt: now.Add(time.Minute).Unix(),
		Lines: []token.Line{{SKU: "20002001", Quantity: 1}},
	})
	if err != nil {
		panic(err)
	}

	keys, err := token.NewRemoteKeys(token.RemoteOptions{URL: edge.URL + "/.well-known/jwks.json"})
	if err != nil {
		panic(err)
	}
	verifier, err := token.NewVerifier(token.Options{Remote: keys, Audience: "order-backend"})
	if err != nil {
		panic(err)
	}
	route := orderRoute(verifier, &orders{taken: map[string]bool{}})

	order := func(buyer, sku, signed string) {
		r := httptest.NewRequest(http.MethodPost, "/api/order?sku="+sku, nil)
		r.Header.Set("X-User-Id", buyer)
		if signed != "" {
			r.Header.Set(token.Header, signed)
		}
		w := httptest.NewRecorder()
		route(w, r)
		reason, _, _ := strings.Cut(strings.TrimSpace(w.Body.String()), ":")
		fmt.Println(strings.TrimSpace(fmt.Sprint(w.Code, " ", reason)))
	}
	order("alice", "20002001", signed)
	order("alice", "20002001", signed) // a proxy sends it twice
	order("alice", "20002002", signed)
	order("bob", "20002001", signed)
	order("alice", "20002001", "")
	// Output:
	// 201
	// 201
	// 403 wrong lines
	// 403 wrong subject
	// 403 no reservation token
}
