package guard_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/fcgi"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// TestOptions: only a request that asks what the route can do passes a gate unread. A shop could
// take one with a body, or with another method, for an order.
func TestOptions(t *testing.T) {
	const bare = "OPTIONS /api/order%s HTTP/1.1\nHost: shop\nOrigin: https://shop.example\nAccess-Control-Request-Method: POST\n%s\n"
	for name, guard := range map[string]string{"behind a guard": "stockgate_guard\n", "alone": ""} {
		t.Run(name, func(t *testing.T) {
			shop := sitetest.NewBackend(t, sitetest.Created)
			s := sitetest.OpenCaddyfile(t, guard+"stockgate /api* {\n json_body action order\n buyer {header.X-User-Id}\n line {json.sku}\n }\n reverse_proxy "+shop.Addr())
			refusesAll(s, shop,
				asks("OPTIONS /api/order"), asks("OPTIONS /api/order", "X-HTTP-Method-Override: POST"),
				"OPTIONS /api/order HTTP/1.1\nHost: shop\nTransfer-Encoding: chunked\n\n1\r\n{\r\n0\r\n\r\n",
				fmt.Sprintf(bare, "?_method=POST", ""), fmt.Sprintf(bare, "?x=%zz&.method=POST", ""))
			passesAll(s, shop, fmt.Sprintf(bare, "", ""), fmt.Sprintf(bare, "?method=POST", ""), fmt.Sprintf(bare, "", "Content-Length: 0\n"),
				"OPTIONS /api/order HTTP/1.1\nHost: shop\nTransfer-Encoding: chunked\n\n0\r\n\r\n")
			s.AnswerTo(fmt.Sprintf(bare, "", "X-HTTP-Method-Override: POST\nX-Method-Override: POST\n"))
			for _, got := range shop.Take() {
				for _, name := range []string{"X-Http-Method-Override", "X-Method-Override"} {
					if value := got.Header.Get(name); value != "" {
						t.Errorf("the shop got %s: %s", name, value)
					}
				}
			}
		})
	}
}

// TestOptionsCarryNoOrder: gates without a method whose orders could come in OPTIONS. What the gate
// would read from the query does not reach the shop; where the path or a cart is enough, nothing does.
func TestOptionsCarryNoOrder(t *testing.T) {
	for name, c := range map[string]struct {
		rules, target string
		forwarded     string // the target that the shop gets; empty: the edge answers
	}{
		"the query":            {"line {query.sku}", "/api/order?sku=plain", "/api/order"},
		"query or form":        {"line {param.sku} {param.n}", "/api/order?sku=plain&x=1", "/api/order"},
		"another spelling":     {"line {form.sku}", "/api/order?+sku=plain&x=%zz", "/api/order"},
		"a JSON body":          {"json_body action order\nline {json.sku}", "/api/order?action=order&sku=plain", "/api/order"},
		"an array":             {"lines {json.items} sku", "/api/order?items[0][sku]=plain", "/api/order"},
		"GraphQL":              {"graphql order\noutcome backend\nline {graphql.sku}", "/api/order?query=mutation%7Border(sku:%22plain%22)%7Bid%7D%7D", "/api/order"},
		"GraphQL and a lookup": {"graphql pay\noutcome backend\nlookup GET http://127.0.0.1:1/cart\nlines {lookup.items} id quantity", "/api/order?query=mutation%7Bpay%7D", "/api/order"},
		"the path":             {"line {path.1}", "/api/plain?n=2", ""},
		"a constant":           {"line plain {form.n}", "/api/order", ""},
		"one of two":           {"line {query.sku}\nline plain {query.n}", "/api/order?n=2", ""},
		"a cookie":             {"line {json.sku} {cookie.n}\nline {cookie.sku}", "/api/order", ""},
		"a lookup":             {"lookup GET http://127.0.0.1:1/cart\nlines {lookup.items} id quantity", "/api/order", ""},
	} {
		t.Run(name, func(t *testing.T) {
			shop := sitetest.NewBackend(t, sitetest.Created)
			s := sitetest.OpenCaddyfile(t, "stockgate_guard\nstockgate /api* {\nbuyer {header.X-User-Id}\n"+c.rules+"\n}\nreverse_proxy "+shop.Addr())
			for _, headers := range []string{"", "Origin: https://shop.example\nAccess-Control-Request-Method: POST\n"} {
				answer := s.AnswerTo("OPTIONS " + c.target + " HTTP/1.1\nHost: shop\nX-User-Id: u1\n" + headers + "\n")
				got := shop.Take()
				switch {
				case c.forwarded == "" && (answer.Status != http.StatusNoContent || len(got) > 0):
					t.Errorf("%d, the shop got %+v", answer.Status, got)
				case c.forwarded != "" && (answer.Status != http.StatusCreated || len(got) != 1 || got[0].URI != c.forwarded):
					t.Errorf("%d, the shop got %+v", answer.Status, got)
				}
			}
		})
	}
}

// TestOptionsBeforeACheck: a gate that only checks decides nothing about OPTIONS.
func TestOptionsBeforeACheck(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, `
	stockgate_guard
	stockgate_check /api/old check {
		line {query.sku}
	}
	@order path /api/order
	stockgate @order {
		buyer {header.X-User-Id}
		line  {query.sku}
	}
	reverse_proxy /api/old `+shop.Addr()+` {
		rewrite /api/order?sku=plain
	}
	reverse_proxy `+shop.Addr())
	refusesAll(s, shop, "OPTIONS /api/old HTTP/1.1\nHost: shop\n\n")
}

// TestOptionsAtFastCGI: the target that the client has sent, which PHP reads too, has no query.
func TestOptionsAtFastCGI(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	var seen atomic.Pointer[string]
	go fcgi.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target := r.URL.RequestURI()
		seen.Store(&target)
		w.WriteHeader(http.StatusCreated)
	}))
	s := sitetest.OpenCaddyfile(t, "stockgate_guard\nstockgate /order.php {\nbuyer {header.X-User-Id}\nline {query.sku}\n}\nreverse_proxy "+ln.Addr().String()+" {\ntransport fastcgi {\nsplit .php\n}\n}")
	answer := s.AnswerTo("OPTIONS /order.php?sku=plain HTTP/1.1\nHost: shop\n\n")
	if got := seen.Load(); answer.Status != http.StatusCreated || *got != "/order.php" {
		t.Errorf("%d %s, PHP reads %q", answer.Status, answer.Body, *got)
	}
}
