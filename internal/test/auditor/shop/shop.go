// Package shop is the auditor's shop: it verifies the token of each order with its own
// code, records the orders that it took, and misbehaves on request.
package shop

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/test/auditor"
)

// Shop is an order backend behind the gates.
type Shop struct {
	// Now is the clock by which tokens expire; default time.Now.
	Now func() time.Time
	// Conduct says how the shop treats an order; default: it sells, 201.
	Conduct func(o *auditor.Order) Conduct
	// Others are SKUs that no sale lists: they may come without a token.
	Others map[string]bool
	// Later: the shop does not sell in its answer, but when its own call to the API says so.
	Later bool

	history *auditor.History
	keys    keys
	listen  net.Listener
	server  *http.Server

	mu    sync.Mutex
	byJTI map[string]*auditor.Order
	count int
}

// Start runs a shop that writes into a history.
func Start(h *auditor.History) (*Shop, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Shop{Now: time.Now, history: h, listen: ln, byJTI: map[string]*auditor.Order{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/order", s.order)
	mux.HandleFunc("GET /orders/{id}", s.probe)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Order", "browse")
		io.WriteString(w, "browse\n")
	})
	s.server = &http.Server{Handler: mux}
	go s.server.Serve(ln)
	return s, nil
}

// Addr is host:port of the shop.
func (s *Shop) Addr() string { return s.listen.Addr().String() }

// Trust makes the shop accept the keys of an edge.
func (s *Shop) Trust(site string) { s.keys.trust(site + "/.well-known/jwks.json") }

// Close ends the shop.
func (s *Shop) Close() { s.server.Close() }

// Orders is how many orders the shop has taken.
func (s *Shop) Orders() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, o := range s.byJTI {
		if o.Taken {
			n++
		}
	}
	return n
}

// Take writes an order that the shop had only noted; false: there is none.
func (s *Shop) Take(jti string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byJTI[jti]
	if o == nil {
		return false
	}
	o.Taken = true
	return true
}

// request is what an order says.
type request struct {
	Items []struct {
		SKU      string   `json:"sku"`
		Quantity quantity `json:"quantity"`
	} `json:"items"`
	Region string `json:"region"`
	Ref    string `json:"order_no"`
}

// quantity is a number, or a text of one: shops take both. An empty text is 0, as forms have it.
type quantity int64

func (q *quantity) UnmarshalJSON(text []byte) error {
	if string(text) == `""` {
		*q = 0
		return nil
	}
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*q = quantity(n)
	return err
}

func (s *Shop) order(w http.ResponseWriter, r *http.Request) {
	var asked request
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil { // there is nothing to sell, and no client to answer
		s.history.CutOff(&auditor.Order{Attempt: r.Header.Get("X-Attempt"), Buyer: r.Header.Get("X-User-Id")})
		panic(http.ErrAbortHandler)
	}
	err = json.Unmarshal(body, &asked)
	o := &auditor.Order{Attempt: r.Header.Get("X-Attempt"), Buyer: r.Header.Get("X-User-Id"), Key: r.Header.Get("Idempotency-Key"), Ref: asked.Ref}
	for _, i := range asked.Items {
		if i.Quantity == 0 {
			continue // nothing of it is ordered
		}
		o.Lines = append(o.Lines, auditor.Line{SKU: i.SKU, Region: asked.Region, Qty: int64(i.Quantity)})
	}
	if err != nil {
		o.Problem = "the shop cannot read the order: " + err.Error()
	} else {
		o.Problem = s.check(o, r.Header.Values("Stockgate-Token"))
	}
	c := s.write(o)
	c.answer(&leaving{ResponseWriter: w, order: o, history: s.history}, r, o)
}

// leaving notes when the shop answers an order.
type leaving struct {
	http.ResponseWriter
	order   *auditor.Order
	history *auditor.History
}

func (w *leaving) WriteHeader(status int) {
	w.history.Leaves(w.order)
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the shop misbehave on the connection itself.
func (w *leaving) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// check verifies the token and that it is about this order.
func (s *Shop) check(o *auditor.Order, tokens []string) (problem string) {
	if len(tokens) == 0 && len(o.Lines) > 0 && !slices.ContainsFunc(o.Lines, func(l auditor.Line) bool { return !s.Others[l.SKU] }) {
		return ""
	}
	if len(tokens) != 1 {
		return fmt.Sprintf("an order reached the shop with %d tokens", len(tokens))
	}
	c, err := s.keys.verify(tokens[0], s.Now())
	if err != nil {
		return "an order reached the shop, and " + err.Error()
	}
	o.JTI, o.Sale, o.Expires = c.ID, c.Sale, c.Expires
	switch {
	case c.Subject != o.Buyer:
		return fmt.Sprintf("the token is of buyer %q", c.Subject)
	case !maps.Equal(sum(c.Lines), sum(o.Lines)):
		return fmt.Sprintf("the token is about %v, the order about %v", c.Lines, o.Lines)
	case c.Ref != o.Ref:
		return fmt.Sprintf("the token's ref is %q, the order's %q", c.Ref, o.Ref)
	}
	return ""
}

func sum(lines []auditor.Line) map[string]int64 {
	units := map[string]int64{}
	for _, l := range lines {
		units[l.Cell()] += l.Qty
	}
	return units
}

// write notes the order: a jti that is known is answered like the first time.
func (s *Shop) write(o *auditor.Order) Conduct {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.At, o.Came = s.history.Tick(), time.Now()
	s.count++
	o.Proof = fmt.Sprintf("ord-%d", s.count)
	c := Sells
	if o.Problem != "" {
		c = Refuses
	} else if s.Conduct != nil {
		c = s.Conduct(o)
	}
	if first := s.byJTI[o.JTI]; first != nil && o.JTI != "" {
		o.Again = true
		if first.Taken {
			o.Proof, o.Taken, c = first.Proof, true, Sells
		} else {
			c = Refuses // refused before: it must not be sold under this jti any more
		}
	} else {
		o.Taken = c.takes && !s.Later
		if o.JTI != "" {
			s.byJTI[o.JTI] = o
		}
	}
	o.Answer = c.status
	s.history.Ordered(o)
	return c
}

// probe answers whether the shop has an order of a reservation.
func (s *Shop) probe(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	o := s.byJTI[r.PathValue("id")]
	has := o != nil && o.Taken
	s.mu.Unlock()
	if !has {
		http.Error(w, "no such order", http.StatusNotFound)
		return
	}
	fmt.Fprintln(w, strings.TrimSpace(o.Proof))
}
