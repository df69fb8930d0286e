package gate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	_ "github.com/caddyserver/caddy/v2/modules/logging"
	_ "github.com/caddyserver/caddy/v2/modules/metrics"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	_ "github.com/stockgate/stockgate/caddymodule/operate/operator"
	_ "github.com/stockgate/stockgate/caddymodule/status"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// orderShop takes orders, and says how one ended when it is asked.
type orderShop struct {
	*httptest.Server
	mu      sync.Mutex
	orders  map[string]bool
	status  int // of further orders; from 300 on they are not placed
	asks    int
	placed  func() bool // whether it says that an order was placed; nil: it does
	failing bool        // no question is answered
}

func newOrderShop(t *testing.T) *orderShop {
	s := &orderShop{orders: make(map[string]bool), status: http.StatusCreated}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.orders[r.FormValue("buyer")] = s.status < 300
		w.WriteHeader(s.status)
	})
	mux.HandleFunc("GET /orders/{ref}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asks++
		if s.failing {
			http.Error(w, "not now", http.StatusBadGateway)
			return
		}
		paid := s.orders[r.PathValue("ref")] && (s.placed == nil || s.placed())
		fmt.Fprintf(w, `{"paid":"%t"}`, paid)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *orderShop) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// asks is a site whose gate asks an orderShop how orders ended.
type asks struct {
	*sitetest.Site
	t      *testing.T
	server *redistest.Server
	mu     sync.Mutex
	later  []question
}

// question is one that the gate asks the shop after some time.
type question struct {
	wait time.Duration
	ask  func()
}

// openAsks opens a site with a sale. Questions that its gate asks later are held back until the test asks them.
func openAsks(t *testing.T, shop *orderShop, holdFor time.Duration) *asks {
	t.Helper()
	server, config := sitetest.Redis(t)
	s := &asks{Site: sitetest.Open(t, nil), t: t, server: server}
	answer := func(paid string) map[string]any {
		return map[string]any{"json": []any{map[string]any{"path": "paid", "values": []string{paid}}}}
	}
	s.Gates = []any{
		map[string]any{
			"handler": "stockgate", "name": "pay", "buyer": []string{"{query.buyer}"}, "lines": []any{map[string]any{"sku": []string{"few"}}},
			"ref": []string{"{query.buyer}"}, "hold_for": holdFor, "outcome": "ask",
			"ask":     map[string]any{"method": "GET", "url": shop.URL + "/orders/{ref}", "timeout": "1m"},
			"answers": map[string]any{"sold": answer("true"), "not": answer("false")},
			"rules":   []any{map[string]any{"outcome": "confirm", "when": []string{"@sold"}}, map[string]any{"outcome": "release", "when": []string{"@not"}}},
		},
		map[string]any{"handler": "reverse_proxy", "upstreams": []any{map[string]any{"dial": shop.Listener.Addr().String()}}},
	}
	s.Load(config)
	s.OpenSale()
	timing.QuestionLater.Set(func(wait time.Duration, ask func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.later = append(s.later, question{wait, ask})
	})
	t.Cleanup(func() { timing.QuestionLater.Set(nil) })
	return s
}

// order places an order for one unit.
func (s *asks) order(buyer string, status int) {
	s.t.Helper()
	s.Ask("http", http.MethodPost, "/order?buyer="+buyer, "").Is(s.t, status, "")
}

// heldBack waits for n questions, and returns them.
func (s *asks) heldBack(n int) (all []question) {
	s.t.Helper()
	s.Eventually(fmt.Sprint(n, " questions"), func() (string, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.later) == n {
			all, s.later = s.later, nil
		}
		return fmt.Sprint(len(s.later)), len(all) == n
	})
	return all
}

// has wants this stock of the item: stock available held in_doubt confirmed.
func (s *asks) has(want string) {
	s.t.Helper()
	if got := s.cell(); got != want {
		s.t.Errorf("stock %s, want %s", got, want)
	}
}

func (s *asks) becomes(want string) {
	s.t.Helper()
	s.Eventually(want, func() (string, bool) { got := s.cell(); return got, got == want })
}

func (s *asks) cell() string {
	return sitetest.Do[sitetest.SaleStock](s.Site, "GET", "/stockgate/sales/double11", "").Cell("few", "")
}

// endTokens lets the tokens of all holds end, and the holds reach their deadline.
func (s *asks) endTokens() {
	s.t.Helper()
	const records = "stockgate:{double11.0}:records"
	c := s.server.Client()
	for id, text := range c.HGetAll(s.t.Context(), records).Val() {
		r, err := record.Parse(text)
		if err != nil {
			s.t.Fatal(err)
		}
		r.Deadline, r.Exp = r.Created, r.Created
		if err := c.HSet(s.t.Context(), records, id, r.Text()).Err(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// That the shop has no order yet proves nothing while its answer may lag behind.
func TestAskDoubts(t *testing.T) {
	shop := newOrderShop(t)
	s := openAsks(t, shop, time.Hour)
	shop.placed = func() bool { return shop.asks > 1 } // it is seen by the second question only
	s.order("ann", 201)
	s.has("3 2 0 1 0")
	shop.set(func() { shop.status = 402 })
	s.order("bob", 402)
	s.has("3 1 0 2 0")
	for _, q := range s.heldBack(2) {
		if q.wait < 30*time.Minute {
			t.Errorf("the shop is asked again in %v, and the token is valid for longer", q.wait)
		}
		q.ask()
	}
	left := s.heldBack(1)
	s.has("3 1 0 1 1") // Redis gives nothing back before the token has ended
	s.endTokens()
	left[0].ask()
	s.becomes("3 2 0 0 1") // nothing is in doubt after the deadline
}

// A question that failed is asked again soon, and what the shop said before that counts for
// nothing.
func TestAskAgain(t *testing.T) {
	shop := newOrderShop(t)
	s := openAsks(t, shop, 24*time.Hour)
	shop.failing = true
	s.order("ann", 201)
	s.has("3 2 0 1 0")
	shop.set(func() { shop.failing = false })
	for _, q := range s.heldBack(1) {
		if q.wait > time.Minute {
			t.Errorf("the shop is asked again in %v", q.wait)
		}
		q.ask()
	}
	s.becomes("3 2 0 0 1") // long before its deadline
}
