package guard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// byQuery is a shop whose script is one path: the query says what a request is for.
const byQuery = `
	@order {
		method POST
		query  route=checkout/confirm
	}
	stockgate_guard
	stockgate @order {
		buyer {header.X-User-Id}
		line  {json.sku}
	}
	reverse_proxy %s
`

// takesAll sends orders that come to the gate.
func takesAll(s *sitetest.Site, shop *sitetest.Backend, requests ...string) {
	s.T.Helper()
	for i, request := range requests {
		answer := s.AnswerTo(strings.Replace(request, "X-User-Id: u1", fmt.Sprint("X-User-Id: v", i), 1))
		line, _, _ := strings.Cut(request, "\n")
		if got := shop.Take(); answer.Status != http.StatusCreated || len(got) != 1 || got[0].Header.Get("Stockgate-Token") == "" {
			s.T.Errorf("%s: %d %s, the shop got %+v", line, answer.Status, answer.Body, got)
		}
	}
}

// TestGateByQuery has the queries that some server takes for that of the gate.
func TestGateByQuery(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, fmt.Sprintf(byQuery, shop.Addr()))
	takesAll(s, shop, asks("POST /index.php?route=checkout/confirm"), asks("POST /?x=1&route=checkout%2Fconfirm"))
	refusesAll(s, shop,
		// Caddy reads nothing in a query that it cannot parse
		asks("POST /index.php?route=checkout/confirm&x=%zz"), asks("POST /index.php?x=%&route=checkout/confirm"), asks("POST /index.php?x=a;b&route=checkout/confirm"),
		asks("POST /index.php?x=%zz"), asks("POST /index.php?a;b"),
		// the name: PHP, and shops that trim it
		asks("POST /index.php?+route=checkout/confirm"), asks("POST /index.php?%20route=checkout/confirm"), asks("POST /index.php?route%00=checkout/confirm"),
		asks("POST /index.php?route%00x=checkout/confirm"), asks("POST /index.php?Route=checkout/confirm"), asks("POST /index.php?route[]=checkout/confirm"),
		asks("POST /index.php?route%5Ba%5D=checkout/confirm"),
		// the value
		asks("POST /index.php?route=Checkout/Confirm"), asks("POST /index.php?route=checkout//confirm"), asks("POST /index.php?route=checkout/confirm/"),
		asks("POST /index.php?route=/checkout/confirm"), asks("POST /index.php?route=+checkout/confirm+"), asks("POST /index.php?route=checkout%252Fconfirm"),
		asks("POST /index.php?route=checkout/x/../confirm"), asks("POST /index.php?route=checkout%5Cconfirm"), asks("POST /index.php?route=checkout/confirm%00"),
		asks("POST /index.php?route=checkout/con-firm"), asks("POST /index.php?route=!checkout/confirm"),
		// one of many
		asks("POST /index.php?route=x&ROUTE=checkout/confirm"), asks("POST /index.php?"+strings.Repeat("route=x&", 9)+"y"))
	passesAll(s, shop,
		asks("POST /index.php"), asks("POST /index.php?route=checkout/cart"), asks("POST /index.php?route=checkout/confirmation"), asks("POST /index.php?x=checkout/confirm"),
		asks("POST /index.php?the_route=checkout/confirm"), asks("POST /index.php?route=account/x&route[]=account/y"), asks("POST /index.php?route"),
		asks("GET /index.php?route=checkout/confirm&x=%zz"), asks("GET /index.php?x=a;b"))
}

// TestGateByQueryAndPath: only queries of requests that could come to the gate otherwise are read.
func TestGateByQueryAndPath(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, strings.Replace(fmt.Sprintf(byQuery, shop.Addr()), "method POST", "method POST\npath /shop.php", 1))
	takesAll(s, shop, asks("POST /shop.php?route=checkout/confirm"))
	refusesAll(s, shop, asks("POST /shop.php?x=%zz"), asks("POST /SHOP.php/?x=a;b"), asks("POST /shop.php/y?+route=checkout/confirm"), asks("POST /shop.php?+route=checkout/confirm"))
	passesAll(s, shop, asks("POST /other?x=%zz"), asks("POST /other?x=a;b&+route=checkout/confirm"), asks("POST /shop.php?route=x"))
}

// TestGateAroundAQuery has gates that a query leads past: the shop may read another one of several
// values than Caddy does.
func TestGateAroundAQuery(t *testing.T) {
	const rules = "{\nbuyer {header.X-User-Id}\nline {json.sku}\n}\n"
	for name, c := range map[string]struct {
		routes                 string
		takes, refuses, passes []string
	}{
		"not": {
			"@order {\nmethod POST\npath /order\nnot query preview=1\n}\nstockgate @order " + rules,
			[]string{"POST /order", "POST /order?preview=2"},
			[]string{"POST /order?preview=1&preview=0", "POST /order?preview=1&Preview=", "POST /order?preview=0&preview=1"},
			[]string{"POST /order?preview=1", "POST /order?preview=1&preview=1", "POST /other?preview=1&preview=0"},
		},
		"beside another gate": {
			"@pay {\nmethod POST\nquery step=pay\n}\n@confirm {\nmethod POST\nquery step=confirm\n}\nhandle @pay {\nstockgate pay " + rules + "reverse_proxy SHOP\n}\nhandle @confirm {\nstockgate confirm " + rules + "reverse_proxy SHOP\n}\n",
			[]string{"POST /?step=pay", "POST /?step=confirm", "POST /?step=pay&step=pay"},
			[]string{"POST /?step=pay&step=confirm", "POST /?step=pay&Step=confirm", "POST /?step=x&step[]=confirm"},
			[]string{"POST /?step=x", "GET /?step=pay&step=confirm"},
		},
		"any value": {
			"@order {\nmethod POST\nquery buy=*\n}\nstockgate @order " + rules,
			[]string{"POST /?buy=1", "POST /?buy", "POST /?buy=1&buy=2"}, []string{"POST /?Buy=1", "POST /?+buy=1", "POST /?buy[]=1", "POST /?%zz&buy"}, []string{"POST /?sell=1", "POST /"},
		},
		"two names": {
			"@order {\nmethod POST\nquery a=1 a=2 b=3\n}\nstockgate @order " + rules,
			[]string{"POST /?a=1&b=3", "POST /?b=3&a=2"}, []string{"POST /?A=1&b=3", "POST /?a=2&b.=3&b=3+", "POST /?a[]=1&B=3"}, []string{"POST /?a=1", "POST /?A=1&b=4", "POST /?a=3&b=3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shop := sitetest.NewBackend(t, sitetest.Created)
			s := sitetest.OpenCaddyfile(t, strings.ReplaceAll("stockgate_guard\n"+c.routes+"reverse_proxy SHOP\n", "SHOP", shop.Addr()))
			for _, each := range []struct {
				lines []string
				do    func(*sitetest.Site, *sitetest.Backend, ...string)
			}{{c.takes, takesAll}, {c.refuses, refusesAll}, {c.passes, passesAll}} {
				for _, line := range each.lines {
					each.do(s, shop, strings.Replace(asks(line), "u1", "u"+strings.Trim(fmt.Sprintf("%x", line), " "), 1))
				}
			}
		})
	}
}

// TestSecondLookAtQueries: a rewrite behind the guard makes a request for a gate by its query alone.
func TestSecondLookAtQueries(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, strings.ReplaceAll(`
	stockgate_guard
	handle /buy {
		rewrite * /index.php?route=checkout/confirm
		reverse_proxy SHOP
	}
	handle /buy/odd {
		rewrite * /index.php?Route=checkout/confirm&x=%zz
		reverse_proxy SHOP
	}
	handle /cart {
		rewrite * /index.php?route=checkout/cart
		reverse_proxy SHOP
	}
	@order {
		method POST
		query  route=checkout/confirm
	}
	handle {
		stockgate @order {
			buyer {header.X-User-Id}
			line  {json.sku}
		}
		reverse_proxy SHOP
	}
	`, "SHOP", shop.Addr()))
	refusesAll(s, shop, asks("POST /buy"), asks("POST /buy/odd"))
	passesAll(s, shop, asks("POST /cart"), asks("GET /buy"))
	takesAll(s, shop, asks("POST /index.php?route=checkout/confirm"))
}
