package guard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// TestHonestRequestsPass has gates whose matchers leave something out, with requests that are for no gate and
// requests that some server reads as an order. Each request is refused by the guard, or comes to the shop.
func TestHonestRequestsPass(t *testing.T) {
	const rules = " {\nbuyer {header.X-User-Id}\nline {json.sku}\n}\n"
	for name, c := range map[string]struct {
		site           string
		pass, refusals []string
	}{
		"an excluded path": {
			"@order {\nmethod POST PUT\npath /api/*\nnot path /api/cart* /api/login /api/Logout\n}\nstockgate @order" + rules,
			[]string{"POST /api/login", "POST /API/Login", "POST /api//login", "POST /api/cart", "POST /api/cart/", "POST /api/carts/1/lines", "POST /api/logout", "POST /api/LOGOUT", "GET /api/x"},
			[]string{"POST /api/login/..;/order", "POST /api/login%2f..%2forder", "POST /api/cart/..%2forder", "POST /api/cart;/../order", "POST /x/..%2fapi/order"},
		},
		"an excluded pattern": {
			"@order {\nmethod POST\npath /*\nnot path_regexp ^/public/[a-z]+$\n}\nstockgate @order" + rules,
			[]string{"POST /public/a", "POST /public/a/", "POST /public/A", "POST /Public/a"},
			[]string{"POST /public/..%2fcheckout", "POST /public/a;/../../checkout"},
		},
		"an excluded expression": {
			"@order {\nmethod POST\npath /api/*\nnot expression `path('/api/login')`\n}\nstockgate @order" + rules,
			[]string{"POST /api/login", "POST /api/Login", "POST /api//login"},
			[]string{"POST /api/login/..%2forder"},
		},
		"a path ends before the gate's": {
			"@order path /checkout/*\nstockgate @order" + rules,
			[]string{"GET /checkout", "HEAD /checkout", "GET /Checkout?step=2", "GET /x/..;/checkout", "OPTIONS /x"},
			[]string{"POST /checkout", "PUT /checkout", "POST /x/..;/checkout", "GET /checkout;x/1", "GET /checkout%2f1", "POST /checkout?_method=GET"},
		},
		"and is named": {
			"@order path /checkout/* /checkout\nstockgate @order {\nbuyer {header.X-User-Id}\noutcome backend\ngraphql buy\nline {graphql.sku}\n}\n",
			[]string{"GET /checkout", "GET /checkout/"},
			nil,
		},
		"and the gate sells by GET": {
			"@order {\nmethod GET\npath /buy/*\n}\nstockgate @order {\nbuyer {header.X-User-Id}\nline {path.1}\n}\n",
			nil, []string{"GET /buy", "HEAD /buy"},
		},
		"and the item is looked up": {
			"@order path /buy/*\nstockgate @order {\nbuyer {header.X-User-Id}\nlookup GET http://127.0.0.1:9/cart\nlines {lookup.items} sku quantity\none_at_a_time {cookie.session}\n}\n",
			nil, []string{"GET /buy", "POST /buy"},
		},
		"and the item is in the query": {
			"@order path /buy/*\nstockgate @order {\nbuyer {header.X-User-Id}\nline {query.sku}\n}\n",
			[]string{"GET /buy"}, []string{"GET /buy?sku=plain", "POST /buy?sku=plain"},
		},
		"and it is a field of a form": {
			"@order path /buy/*\nstockgate @order {\nbuyer {header.X-User-Id}\nline {form.sku}\n}\n",
			[]string{"GET /buy"}, []string{"GET /buy?sku=plain"},
		},
		"and the document may be in the query": {
			"@order path /graphql/*\nstockgate @order {\nbuyer {header.X-User-Id}\noutcome backend\ngraphql query.buy\nline {graphql.sku}\n}\n",
			[]string{"GET /graphql"}, []string{"GET /graphql?query={buy(sku:1){x}}", "HEAD /graphql?query={buy(sku:1){x}}"},
		},
		"a check of a path": {
			"@change {\npath /api/carts/*\nnot path /api/carts/*/checkout\n}\nstockgate_check @change {\none_at_a_time {path.2}\n}\n",
			[]string{"POST /api/carts", "PUT /api/Carts", "GET /api/carts", "POST /api/carts/1/lines", "GET /api/carts/a%2Fb", "POST /api/carts/1/checkout/"}, nil,
		},
		"a check of a cookie": {
			"@change path /cart/*\nstockgate_check @change {\none_at_a_time {cookie.session}\n}\n",
			[]string{"GET /cart", "POST /cart", "POST /cart/lines", "POST /cart/a%2Fb"}, nil,
		},
		"an encoded slash at a gate that reads operations": {
			"stockgate /store/* {\nbuyer {header.X-User-Id}\njson_body action buy\nline {json.sku}\n}\n",
			[]string{"GET /store/products/a%2Fb", "GET /store/a%2Eb/%25", "GET /store"}, []string{"POST /store/products/a%2Fb"},
		},
		"a preflight where a rewrite leads to the order": {
			"@order expression `{http.request.method} == 'POST' && {http.request.uri.path} == '/buy'`\nroute {\nstockgate @order {\nbuyer {header.X-User-Id}\nline {json.sku}\nexits_as /api/order\n}\nuri replace /buy /api/order\n}\n",
			[]string{"OPTIONS /buy", "OPTIONS /api/order", "OPTIONS /buy?x=1"}, []string{"PUT /api/order", "OPTIONS /api/order?_method=POST"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shop := sitetest.NewBackend(t, sitetest.Created)
			s := sitetest.OpenCaddyfile(t, "stockgate_guard\n"+c.site+fmt.Sprintf("reverse_proxy %s\n", shop.Addr()))
			send := func(line string) (status int, reached bool) {
				body := ""
				if method, _, _ := strings.Cut(line, " "); method == http.MethodPost || method == http.MethodPut {
					body = `{"sku":"plain","action":"buy"}`
				}
				answer := s.AnswerTo(fmt.Sprintf("%s HTTP/1.1\nHost: shop\nX-User-Id: u1\nContent-Type: application/json\nContent-Length: %d\n\n%s", line, len(body), body))
				return answer.Status, len(shop.Take()) == 1
			}
			for _, line := range c.pass {
				if status, reached := send(line); !reached {
					t.Errorf("%s: %d", line, status)
				}
			}
			for _, line := range c.refusals {
				if status, reached := send(line); reached || status != http.StatusBadRequest {
					t.Errorf("%s: %d, and it reached the shop: %t", line, status, reached)
				}
			}
		})
	}
}

// TestPrefixWarnings: a gate whose path leaves out what many servers take for a part of it has a warning when
// it is loaded, and in the doctor.
func TestPrefixWarnings(t *testing.T) {
	const order = " {\nbuyer {header.X-User-Id}\nline {json.sku}\n}\n"
	s := sitetest.OpenCaddyfile(t, "respond 201")
	for routes, want := range map[string]string{
		"@order {\nmethod POST\npath /checkout/*\n}\nstockgate @order" + order: "the gate's path /checkout/* does not match /checkout,",
		"handle /Shop/* {\nstockgate" + order + "}\n":                          "the gate's path /shop/* does not match /shop,",
		"handle /shop/* {\nstockgate /shop/order" + order + "}\n":              "",
		"@order path /checkout /checkout/*\nstockgate @order" + order:          "",
		"@order path /check* /checkout/*\nstockgate @order" + order:            "",
		"stockgate /*" + order:                                                                          "",
		"@order path_regexp ^/x/\nstockgate @order" + order:                                             "",
		"@change path /cart/*\nstockgate_check @change {\none_at_a_time {path.1}\n}\n":                  "",
		"@change path /cart/*\nstockgate_check @change {\none_at_a_time {path.1} {cookie.session}\n}\n": "the check's path /cart/* does not match /cart:",
	} {
		if err := s.LoadCaddyfile("stockgate_guard\n" + routes); err != nil {
			t.Fatal(err)
		}
		doctor := s.Admin("GET", "/stockgate/doctor", "").Body
		if strings.Contains(doctor, "does not match") != (want != "") || !strings.Contains(doctor, want) {
			t.Errorf("%s: the doctor says %s", routes, doctor)
		}
	}
}
