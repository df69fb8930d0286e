// Package shop is a small order backend, as an existing shop might have one:
// it takes orders by HTTP, keeps them in SQLite, and checks the reservation
// token that comes with each.
//
// It is an example of how a backend must treat the token (see order.go: the lines and
// the buyer are compared, an id is answered once, the time is looked at right before
// the order is written), the shop of the demo, and a test subject: it can be told to
// misbehave in the ways that shops do.
//
//	POST /api/order          JSON, form or query: sku, quantity, region; or items: [{sku, count}]
//	GET  /orders             every order, as JSON
//	GET  /orders/{id}        the order of a reservation, 404 if there is none
//	GET  /misbehave          the rules in force; PUT replaces them (only if allowed)
//	GET  anything else       a page to browse
//
// The list of orders is open to every client that reaches the shop, so run the shop
// behind the gate and on a private address.
package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/stockgate/stockgate/token"
)

// maxBody is the most bytes of an order that are read.
const maxBody = 1 << 20

// Options configure a shop.
type Options struct {
	// DB is the SQLite file, made if it does not exist. Default: in memory.
	DB string
	// Verifier checks the tokens. nil: a shop that was never changed. It looks
	// at no token, writes every order that it gets, and only notes the id.
	Verifier *token.Verifier
	// AllowMisbehave lets PUT /misbehave and the header X-Misbehave change the
	// behaviour. Without it both are ignored.
	AllowMisbehave bool
	// Misbehave are the rules at start, see [Shop.SetMisbehaviour].
	Misbehave string
	// Seed makes the rules' probabilities repeatable.
	Seed uint64
	// Die ends the process, or what stands for it: die-after calls it when the
	// order is written and nothing is answered yet. nil: die-after is refused.
	Die func()
}

// Shop is an order backend. It is an http.Handler.
type Shop struct {
	verifier *token.Verifier
	allow    bool
	die      func()
	store    *store
	dice     *dice
	rules    atomic.Pointer[rules]
	mux      *http.ServeMux
	counts   counts

	closed chan struct{} // closed by Close, which ends all waits
	once   sync.Once
	mu     sync.RWMutex // held for reading while a request runs
	err    error        // of closing the store
}

// New opens a shop. It fails if the database cannot be opened or a rule is wrong.
func New(o Options) (*Shop, error) {
	s := &Shop{
		verifier: o.Verifier,
		allow:    o.AllowMisbehave,
		die:      o.Die,
		dice:     newDice(o.Seed),
		mux:      http.NewServeMux(),
		closed:   make(chan struct{}),
	}
	if err := s.SetMisbehaviour(o.Misbehave); err != nil {
		return nil, err
	}
	var err error
	if s.store, err = openStore(o.DB); err != nil {
		return nil, err
	}
	s.mux.HandleFunc("POST /api/order", s.serveOrder)
	s.mux.HandleFunc("GET /orders", s.serveOrders)
	s.mux.HandleFunc("GET /orders/{id}", s.serveOneOrder)
	if s.allow {
		s.mux.HandleFunc("GET /misbehave", s.serveMisbehave)
		s.mux.HandleFunc("PUT /misbehave", s.changeMisbehave)
	}
	s.mux.HandleFunc("GET /", servePage)
	return s, nil
}

// ServeHTTP answers one request; 503 once the shop is closed.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Close takes the lock before it closes the database. A waiting writer would block
	// new readers, so they check closed first.
	if s.isClosed() || !s.mu.TryRLock() {
		closing().write(w)
		return
	}
	defer s.mu.RUnlock()
	s.counts.requests.Add(1)
	s.mux.ServeHTTP(w, r)
}

// Close ends hanging requests, waits for running ones, and closes the database. Further
// calls do nothing and return the same error.
func (s *Shop) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = s.store.close()
	})
	return s.err
}

// Orders returns the written orders, oldest first.
func (s *Shop) Orders(ctx context.Context) ([]Order, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.isClosed() {
		return nil, fmt.Errorf("shop: closed")
	}
	return s.store.orders(ctx)
}

func (s *Shop) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

func (s *Shop) serveOrders(w http.ResponseWriter, r *http.Request) {
	orders, err := s.store.orders(r.Context())
	if err != nil {
		broken(err).write(w)
		return
	}
	writeJSON(w, http.StatusOK, orders)
}

func (s *Shop) serveOneOrder(w http.ResponseWriter, r *http.Request) {
	order, ok, err := s.store.order(r.Context(), r.PathValue("id"))
	switch {
	case err != nil:
		broken(err).write(w)
	case !ok:
		answer{Status: http.StatusNotFound, Code: 404, Msg: "no order for this reservation"}.write(w)
	default:
		writeJSON(w, http.StatusOK, order)
	}
}

func servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, "<!doctype html><title>Shop</title><h1>A shop</h1><p>Orders go to <code>POST /api/order</code>.\n")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // an error means that the client has left
}
