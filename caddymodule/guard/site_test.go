package guard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// gatedSite is the README's gate, with one more for another route, before a backend.
const gatedSite = `
	@order {
		method POST
		path   /api/order
	}
	@put {
		method PUT
		path   /api/basket
	}
	@buy {
		method GET
		path_regexp ^/buy/[a-z]+$
	}
	stockgate_guard
	stockgate @order {
		buyer {header.X-User-Id}
		line  {json.sku} {json.quantity}
		also_query rest_route s
	}
	stockgate @put put {
		buyer {header.X-User-Id}
		line  {json.sku}
	}
	stockgate @buy buy {
		buyer {header.X-User-Id}
		line  {path.1}
	}
	reverse_proxy %s
`

// asks is a request with an order for a body.
func asks(line string, headers ...string) string {
	more := ""
	for _, h := range headers {
		more += h + "\n"
	}
	const body = `{"sku":"plain"}`
	return fmt.Sprintf("%s HTTP/1.1\nHost: shop\nX-User-Id: u1\nContent-Type: application/json\n%sContent-Length: %d\n\n%s", line, more, len(body), body)
}

// TestNoWayAroundTheGate sends what some server takes for an order. It must be refused.
func TestNoWayAroundTheGate(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, fmt.Sprintf(gatedSite, shop.Addr()))
	for _, request := range []string{
		asks("POST x:http://h/api/order"), asks("POST x:/api/order"), asks("POST http:api/order"), asks("POST ftp://h/api/order"), asks("POST http://u@h/api/order"),
		asks("post /api/order"), asks("Post /api/order"), asks("get /other"), asks("pOST /other"),
		asks("POST /api/order/#/../../x"), asks("POST /api/order#x"), asks("GET /other?x#y"),
		asks("POST /api/order;x=y"), asks("POST /api;x=y/order"), asks("POST /api/order%3Bx"), asks("POST /api/order;/../x"),
		asks("POST /index.php/api/order"), asks("POST /x/index.PHP/api/order/"), asks("POST /a.php/b.php/api/order"),
		asks("POST /api/order/"), asks("POST /api/order%2f"), asks("POST /api/order%00.png"), asks("POST /api/order%0a"), asks("POST /api/order%23/../x"),
		asks("POST /api/order%3fx=y"), asks("POST /api%252forder"), asks("POST /api/%256frder"), asks("POST /api/%25256frder"), asks(`POST /api\order`),
		asks("POST /api%5corder"), asks("POST /x/..;/api/order"), asks("POST //h/api/order"), asks(`POST /\h/api/order`),
		asks("POST /a%2fb/%2e%2e/api/order"), asks("POST /x%2f..%2fapi%2forder"),
		asks("POST /?rest_route=/api/order"), asks("POST /index.php?s=api/order/"), asks("POST /?rest%5Froute=%2Fapi%2forder"), asks("POST /x?a=b&rest.route=/api/order"),
		asks("POST /api/basket", "X-HTTP-Method-Override: PUT"), asks("POST /api/basket", "X-Method-Override: put"), asks("POST /api/basket?_method=put"),
		asks("HEAD /buy/plain"), asks("GET /buy/PLAIN"), asks("GET /BUY/plain"), asks("GET /buy/plain/"), asks("GET /buy/plain%0a"),
		"POST " + strings.Repeat("/a.php/..;%252e", 60) + " HTTP/1.1\nHost: shop\n\n",
	} {
		answer := s.AnswerTo(request)
		line, _, _ := strings.Cut(request, "\n")
		if got := shop.Take(); len(got) > 0 || answer.Status != http.StatusBadRequest || answer.Header.Get("Stockgate-Refusal") != "malformed" {
			t.Errorf("%.100s: the client got %d %s, the shop %+v", line, answer.Status, answer.Body, got)
		}
	}
	if cell := s.StockOf("plain"); strings.Contains(cell, "held 1") {
		t.Errorf("something is held: %s", cell)
	}
}

// TestOrdersComeToTheGate has the spellings of the route that the gate takes for orders.
func TestOrdersComeToTheGate(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, fmt.Sprintf(gatedSite, shop.Addr()))
	for i, line := range []string{"POST /api/order", "POST /API/Order", "POST /api//order", "POST /api/%6frder", "POST http://shop/api/order", "POST /api/order?s=%2Fx"} {
		request := strings.Replace(asks(line), "u1", fmt.Sprint("u", i), 1)
		answer := s.AnswerTo(request)
		if got := shop.Take(); answer.Status != http.StatusCreated || len(got) != 1 || got[0].Header.Get("Stockgate-Token") == "" {
			t.Errorf("%s: %d %s, the shop got %+v", line, answer.Status, answer.Body, got)
		}
	}
}

// TestOrdinaryRequestsPass replays how applications write their URLs: nothing that they
// use is refused outside of gates.
func TestOrdinaryRequestsPass(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, fmt.Sprintf(gatedSite, shop.Addr()))
	text, err := os.ReadFile("testdata/urls.txt")
	if err != nil {
		t.Fatal(err)
	}
	sent, refused := 0, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		sent++
		method, target, ok := strings.Cut(line, " ")
		if !ok {
			t.Fatalf("no request: %q", line)
		}
		answer := s.AnswerTo(line + " HTTP/1.1\nHost: shop\n\n")
		got := shop.Take()
		if target == "*" && answer.Status == http.StatusOK {
			continue // net/http answers it
		}
		if len(got) != 1 || got[0].Method != method || got[0].URI != target {
			refused++
			t.Errorf("%s: %d %s, the shop got %+v", line, answer.Status, answer.Body, got)
		}
	}
	t.Logf("%d requests, %d refused", sent, refused)
	if sent < 300 {
		t.Errorf("there are only %d requests", sent)
	}
}

// TestOffersOfHTTP2AreRemoved: a tunnel has no gate in it. Java's client offers it by
// default, and its orders pass.
func TestOffersOfHTTP2AreRemoved(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, fmt.Sprintf(gatedSite, shop.Addr()))
	java := []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA"}
	for _, line := range []string{"GET /other", "POST /other", "POST /api/order"} {
		answer := s.AnswerTo(asks(line, java...))
		got := shop.Take()
		if answer.Status != http.StatusCreated || len(got) != 1 {
			t.Fatalf("%s: %d %s, the shop got %+v", line, answer.Status, answer.Body, got)
		}
		for _, name := range []string{"Upgrade", "Http2-Settings", "Connection"} {
			if v, ok := got[0].Header[name]; ok {
				t.Errorf("%s: the shop got %s: %v", line, name, v)
			}
		}
	}
	s.AnswerTo(asks("GET /socket", "Connection: keep-alive, Upgrade", "Upgrade: websocket, h2c"))
	if got := shop.Take(); len(got) != 1 || got[0].Header.Get("Upgrade") != "websocket" {
		t.Errorf("the websocket: %+v", got)
	}
	s.AnswerTo(asks("POST /api/order", "Connection: Upgrade", "Upgrade: websocket"))
	if got := shop.Take(); len(got) != 0 {
		t.Errorf("an order with an upgrade: %+v", got)
	}
}

// TestHeaderNames: CGI servers make an underscore of every other character.
func TestHeaderNames(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	site := strings.Replace(fmt.Sprintf(gatedSite, shop.Addr()), "stockgate_guard", "stockgate_guard {\n allow_headers x~trace\n }", 1)
	s := sitetest.OpenCaddyfile(t, site)
	for _, line := range []string{"GET /other", "POST /api/order"} {
		answer := s.AnswerTo(asks(line, "Stockgate~Token: forged", "stockgate!reservation: forged", "X+User+Id: u2", "X~Trace: 7", "X-Plain: 8"))
		got := shop.Take()
		if answer.Status != http.StatusCreated || len(got) != 1 {
			t.Fatalf("%s: %d %s, the shop got %+v", line, answer.Status, answer.Body, got)
		}
		for name, values := range got[0].Header {
			if strings.ContainsAny(name, "~!+") && name != "X~trace" || strings.Contains(values[0], "forged") {
				t.Errorf("%s: the shop got %s: %v", line, name, values)
			}
		}
		if got[0].Header.Get("X-Plain") != "8" || got[0].Header.Get("X~trace") != "7" {
			t.Errorf("%s: the shop misses headers: %v", line, got[0].Header)
		}
	}
	if err := s.LoadCaddyfile(strings.Replace(site, "x~trace", "stockgate~token", 1)); err == nil {
		t.Error("a name that becomes Stockgate-Token is allowed")
	}
}

// TestWebsocketsOfHTTP2: an extended CONNECT (RFC 8441) passes outside of gates; where a
// gate takes GET it is one.
func TestWebsocketsOfHTTP2(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	sitetest.OpenCaddyfile(t, fmt.Sprintf(gatedSite, shop.Addr()))
	guard := guardOf(t, sitetest.GateNamed(t, "buy"))
	for target, passes := range map[string]bool{"/socket": true, "/socket/?a=b": true, "/buy/plain": false} {
		r, err := http.NewRequest(http.MethodConnect, "http://shop"+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.RequestURI, r.RemoteAddr, r.Header = target, "192.0.2.1:1", http.Header{":protocol": {"websocket"}}
		w := httptest.NewRecorder()
		passed := false
		err = guard.ServeHTTP(w, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, nil), caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
			passed = r.Header[":protocol"] != nil
			return nil
		}))
		if err != nil || passed != passes {
			t.Errorf("%s: passed %t, answered %d, %v", target, passed, w.Code, err)
		}
	}
}
