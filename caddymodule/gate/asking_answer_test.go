package gate_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
)

// numberShop answers an order with its number, and knows orders by that alone.
type numberShop struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newNumberShop(t *testing.T, answers map[string]struct{ encoding, body, state, cause string }) *numberShop {
	s := new(numberShop)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/order", func(w http.ResponseWriter, r *http.Request) {
		a := answers[r.Header.Get("X-User-Id")]
		if a.encoding != "" {
			w.Header().Set("Content-Encoding", a.encoding)
		}
		if answers != nil && r.Header.Get("Accept-Encoding") != "identity" { // the gate reads the answer
			t.Error("the shop may answer in any encoding")
		}
		_, _ = io.WriteString(w, a.body)
	})
	mux.HandleFunc("GET /orders/{number}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r.PathValue("number"))
		w.WriteHeader(http.StatusNoContent)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// TestAskByAnswer: the question names the order by its number in the shop's answer. An answer without a number
// leaves the order in doubt, and says why; the shop is not asked about it.
func TestAskByAnswer(t *testing.T) {
	answers := map[string]struct{ encoding, body, state, cause string }{
		"text":    {"", `{"order":{"number":"A-17"}}`, "confirmed", "asked_sold"},
		"number":  {"", `{"order":{"number":18}}`, "confirmed", "asked_sold"},
		"zipped":  {"gzip", zipped(`{"order":{"number":"A-19"}}`), "confirmed", "asked_sold"},
		"lacking": {"", `{"order":{}}`, "in_doubt", "answer_missing_order.number"},
		"null":    {"", `{"order":{"number":null}}`, "in_doubt", "answer_missing_order.number"},
		"html":    {"", `<html>`, "in_doubt", "answer_not_json"},
		"brotli":  {"br", `{"order":{"number":"A-20"}}`, "in_doubt", "answer_encoded"},
		"long":    {"", `{"order":{"number":"A-21"},"x":"` + strings.Repeat("x", 64<<10) + `"}`, "in_doubt", "answer_too_long"},
		"path":    {"", `{"order":{"number":"../A-22"}}`, "in_doubt", "asked_failed"},
	}
	shop := newNumberShop(t, answers)
	s := sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate /api/order {
		buyer {header.X-User-Id}
		line  {json.sku}
		ref   {header.X-User-Id}
		outcome ask GET `+shop.URL+`/orders/{answer.order.number}
		confirm 204
		release 404
	}
	reverse_proxy `+shop.Listener.Addr().String())
	timing.QuestionLater.Set(func(time.Duration, func()) {
		t.Error("the shop is to be asked later about an order that nothing names")
	})
	defer timing.QuestionLater.Set(nil)
	for buyer, a := range answers {
		answer := s.Send(sitetest.NewOrder("X-User-Id", buyer, "Accept-Encoding", "br, gzip"))
		hold := s.Admin("GET", "/stockgate/reservations/"+answer.Header.Get("Stockgate-Reservation"), "").Body
		if !strings.Contains(hold, a.state) || !strings.Contains(hold, a.cause) {
			t.Errorf("%s: want %s %s: %s", buyer, a.state, a.cause, hold)
		}
	}
	if slices.Sort(shop.asked); !slices.Equal(shop.asked, []string{"18", "A-17", "A-19"}) {
		t.Errorf("the shop was asked about %v", shop.asked)
	}
	if len(s.Logged("outcome ask names the order by {answer.…}: where the shop's answer lacks it, or never comes, the order is in doubt until an operator resolves it; add `in_doubt probe` with a URL that has {ref}")) != 1 {
		t.Error("no warning names the orders that are never asked about")
	}
}

// The question names the order by a claim of the buyer's token, also in a gate without lookup, and where the order
// has waited without its request.
func TestAskByClaim(t *testing.T) {
	l, shop := sitetest.NewLogin(t), newNumberShop(t, nil)
	s := sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate_status
	stockgate /api/order main {
		jwt `+l.KeysURL()+` {
			issuer login
			audience shop
		}
		buyer {jwt.sub}
		line  {json.sku}
		ref   {header.X-Order}
		outcome ask GET `+shop.URL+`/orders/{jwt.sub}
		confirm 204
		release 404
		queue {
			pace 1 1s
			at_once 1
			wait 5m
		}
	}
	reverse_proxy `+shop.Listener.Addr().String())
	s.Send(sitetest.NewOrder("X-Order", "o1", "Authorization", "Bearer "+l.TokenOf("u1", time.Hour))).Is(t, 200, "")
	later := sitetest.NewOrder("X-Order", "o2", "Authorization", "Bearer "+l.TokenOf("u2", time.Hour), "Prefer", "respond-async")
	at := s.Send(later)
	at.Is(t, 202, "")
	endsAs(s, at.Header.Get("Location"), "200 ")
	s.Eventually("two orders are sold", func() (string, bool) {
		stock := s.StockOf("plain")
		return stock, stock == "100 98 0 0 2"
	})
	shop.mu.Lock()
	defer shop.mu.Unlock()
	if !slices.Equal(shop.asked, []string{"u1", "u2"}) {
		t.Errorf("the shop was asked about %v", shop.asked)
	}
}

// Clients of GraphQL choose the names in the answer, and so which order is asked about.
func TestAskByShapedAnswer(t *testing.T) {
	shop := newCartShop(t)
	s := openCarts(t, shop)
	for scope, says := range map[string]string{
		"graphql placeOrder":    "outcome ask: {answer.…} names no order where clients of GraphQL choose what the answer has",
		"json_body method card": "",
	} {
		err := s.LoadCaddyfile("stockgate_guard\n\tstockgate /shop* pay {\n\t\t" + scope + "\n\t\t" +
			strings.Join(append(cartGate(shop), "outcome ask GET "+shop.URL+"/orders/{answer.data.placeOrder.code}", "confirm 200", "release 404"), "\n\t\t") +
			"\n\t}\n\treverse_proxy " + shop.Listener.Addr().String())
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, it should say %q", scope, err, says)
		}
	}
}
