// A shop that sells only what is held: it verifies the reservation token with
// package token, writes the order, and says so to the edge.
//
//	STOCKGATE_JWKS_URL   https://shop.example.com/.well-known/jwks.json
//	STOCKGATE_API_URL    http://10.0.0.1:8444/stockgate, where stockgate_api is mounted
//	STOCKGATE_API_KEY    its key
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/stockgate/stockgate/token"
)

// orders stand for a table with a UNIQUE column for the reservation.
var (
	mu     sync.Mutex
	orders = map[string]string{} // reservation → pending, confirmed or refused
)

// claim writes the order unless there is one, and returns the state that it has.
func claim(reservation string) string {
	mu.Lock()
	defer mu.Unlock()
	if orders[reservation] == "" {
		orders[reservation] = "pending"
	}
	return orders[reservation]
}

// known reports whether there is an order for a reservation.
func known(_ context.Context, reservation string) (bool, error) {
	mu.Lock()
	defer mu.Unlock()
	return orders[reservation] != "", nil
}

func set(reservation, state string) {
	mu.Lock()
	defer mu.Unlock()
	orders[reservation] = state
}

func order(verifier *token.Verifier) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			SKU      string `json:"sku"`
			Quantity int64  `json:"quantity"`
			Region   string `json:"region"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&body); err != nil {
			http.Error(w, "the order cannot be read", http.StatusBadRequest)
			return
		}
		buyer := r.Header.Get("X-User-Id") // or a session; an empty one is refused
		signed, err := token.FromRequest(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		claims, err := verifier.VerifyContext(r.Context(), signed, token.Expect{
			Subject: buyer,
			Lines:   []token.Line{{SKU: body.SKU, Quantity: body.Quantity, Region: body.Region}},
			Known:   known,
		})
		switch {
		case errors.Is(err, token.ErrKnown): // an order that was written keeps its answer
		case errors.Is(err, token.ErrKeysUnavailable):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		state := claim(claims.ID)
		if state == "pending" {
			if state, err = confirm(r.Context(), claims.ID, signed); err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway) // the order stays, to be confirmed later
				return
			}
			set(claims.ID, state)
		}
		if state == "refused" {
			http.Error(w, "the reservation has ended", http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintln(w, claims.ID)
	}
}

// confirm tells the edge that the order is written. It may be asked again.
func confirm(ctx context.Context, reservation, signed string) (state string, err error) {
	body, _ := json.Marshal(map[string]string{"token": signed})
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("STOCKGATE_API_URL")+"/reservations/"+reservation+"/confirm", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("STOCKGATE_API_KEY"))
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var problem struct{ Reason string }
	switch json.NewDecoder(answer.Body).Decode(&problem); {
	case answer.StatusCode == http.StatusOK:
		return "confirmed", nil
	case answer.StatusCode == http.StatusConflict, problem.Reason == "not_found": // refund_needed: give the money back
		return "refused", nil
	}
	return "", fmt.Errorf("the edge answers %s %s", answer.Status, problem.Reason)
}

func main() {
	keys, err := token.NewRemoteKeys(token.RemoteOptions{URL: os.Getenv("STOCKGATE_JWKS_URL")})
	if err != nil {
		log.Fatal(err)
	}
	verifier, err := token.NewVerifier(token.Options{Remote: keys, Audience: "order-backend"})
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /api/order", order(verifier))
	http.HandleFunc("GET /orders", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		json.NewEncoder(w).Encode(slices.Sorted(maps.Keys(orders)))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
