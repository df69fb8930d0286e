package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/token"
)

// What the shop gets can be checked with what the edge publishes, and says what was
// reserved, for whom and until when.
func TestTokenProvesTheReservation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, app string
		secret    string // shared; empty: the edge's JWKS
		issuer    string
		audience  string
		margin    time.Duration
	}{
		{name: "default key", audience: "order-backend", margin: 5 * time.Second},
		{name: "shared secret", app: "token {\n key hmac 0123456789abcdef0123456789abcdef\n audience orders\n issuer edge\n margin 3s\n}",
			secret: "0123456789abcdef0123456789abcdef", issuer: "edge", audience: "orders", margin: 3 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := new(recorder)
			e := startEdge(t, site{shop: serve(t, s), app: test.app, source: `
				buyer {header.X-User-Id}
				region {json.region}
				lines {json.items} sku count`})
			e.sell("flash", "  - {sku: \"7\", regions: {north: 5}}\n  - {sku: \"8\", stock: 5}")
			options := token.Options{Issuer: test.issuer, Audience: test.audience, Secret: test.secret}
			if test.secret == "" {
				remote, err := token.NewRemoteKeys(token.RemoteOptions{URL: e.url + "/.well-known/jwks.json", Timeout: patience})
				if err != nil {
					t.Fatal(err)
				}
				options.Remote = remote
			}
			verifier, err := token.NewVerifier(options)
			if err != nil {
				t.Fatal(err)
			}
			r := e.buy(order{buyer: "a\u00e9", body: `{"region":"north","items":[{"sku":"7","count":1},{"sku":8,"count":2},{"sku":"7","count":1}]}`})
			if r.status != http.StatusCreated {
				t.Fatalf("the order: %v", r)
			}
			got := s.requests()
			if len(got) != 1 || len(got[0].header.Values(token.Header)) != 1 {
				t.Fatalf("the shop got %+v", got)
			}
			claims, err := verifier.Verify(got[0].header.Get(token.Header), token.Expect{
				Subject: "a\u00e9", Lines: []sale.Line{{SKU: "7", Quantity: 2, Region: "north"}, {SKU: "8", Quantity: 2}},
			})
			if err != nil {
				t.Fatal(err)
			}
			kept := e.record(r.reservation)
			if claims.ID != r.reservation || claims.Sale != "flash" {
				t.Errorf("claims %+v, the reservation is %s", claims, r.reservation)
			}
			exp := time.Unix(claims.ExpiresAt, 0)
			if left := kept.Deadline.Sub(exp); left < test.margin || left > test.margin+2*time.Second {
				t.Errorf("the token ends %v before the hold, it should be %v", left, test.margin)
			}
			if want := fmt.Sprint([]line{{"7", 2, "north"}, {"8", 2, ""}}); fmt.Sprint(kept.Lines) != want {
				t.Errorf("reserved %v", kept.Lines)
			}
		})
	}
}

// A cart that no token can hold is refused before anything is asked of Redis: its stock is
// never held.
func TestCartLongerThanAToken(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	e := startEdge(t, site{redis: redisAt(proxy.Addr()), shop: serve(t, s), source: "buyer {header.X-User-Id}\nlines {json.items} sku"})
	var items, lines []string
	for i := range 50 {
		sku := fmt.Sprintf("%s-%d", strings.Repeat("s", 80), i)
		items = append(items, fmt.Sprintf("  - {sku: %q, stock: 10}", sku))
		lines = append(lines, fmt.Sprintf(`{"sku":%q}`, sku))
	}
	e.sell("flash", strings.Join(items, "\n"))
	cart := func(n int) order {
		return order{buyer: "a", body: `{"items":[` + strings.Join(lines[:n], ",") + `]}`}
	}
	proxy.HoldRequests("EVALSHA")
	r := e.buy(cart(50))
	if r.is(t, http.StatusBadRequest, "malformed"); !strings.Contains(r.body, "too many lines for one token") {
		t.Errorf("nothing says why: %v", r)
	}
	proxy.ReleaseRequests()
	if r := e.buyOnceHeard(cart(10)); r.status != http.StatusCreated {
		t.Errorf("a shorter cart: %v", r)
	}
	for _, c := range e.stock("flash").Items {
		if c.Available+c.Confirmed != c.Stock {
			t.Errorf("%+v", c)
		}
	}
	if moves := e.adminGet("/stockgate/sales/flash/journal/movements?limit=200"); strings.Contains(moves, "unsent") {
		t.Errorf("the long cart was reserved, and released again:\n%s", moves)
	}
}
