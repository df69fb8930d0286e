package guard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// closedSite has a gate, and doors that its guard closes.
const closedSite = `
	@ajax {
		method POST
		query  wc-ajax=checkout
	}
	@rest {
		method      POST PUT
		path_regexp ^/rest/([^/]+/)*V1/(guest-)?carts/[^/]+/order$
	}
	stockgate_guard {
		close /api/orders /wp-json/batch/v1
		close @ajax 403 "use the checkout of {status}"
		close @rest 410
		close /quiet 404 ""
	}
	@order {
		method POST
		path   /api*
	}
	stockgate @order {
		buyer {header.X-User-Id}
		line  {json.sku}
		also_query rest_route=/wp-json
	}
	handle_path /v2/* {
		reverse_proxy SHOP
	}
	reverse_proxy SHOP
`

// TestClosedDoors: what some server takes for a closed way is refused, with the answer of the door,
// also where it comes to a gate and where a rewrite behind the guard leads there.
func TestClosedDoors(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, strings.ReplaceAll(closedSite, "SHOP", shop.Addr()))
	for _, c := range []struct {
		line, body string
		status     int
	}{
		{"POST /api/orders", "This way to the shop is closed.", 404}, {"GET /api/orders", "This way to the shop is closed.", 404}, {"PUT /api/orders/", "closed", 404},
		{"POST /API/Orders", "closed", 404}, {"POST /api//orders", "closed", 404}, {"POST /api/orders;x=y", "closed", 404}, {"POST /api/%6frders", "closed", 404},
		{"POST /api%2forders", "closed", 404}, {"POST /x/../api/orders", "closed", 404}, {"POST /index.php/api/orders", "closed", 404}, {`POST /api\orders`, "closed", 404},
		{"POST /?rest_route=/batch/v1", "closed", 404}, {"POST /?rest.route=batch//v1/", "closed", 404}, {"POST /wp-json/batch/v1/", "closed", 404},
		{"POST /?wc-ajax=checkout", "use the checkout of 403", 403}, {"POST /shop?+wc-ajax=Checkout", "use the checkout of 403", 403}, {"POST /?wc-ajax[]=checkout&x=%zz", "use the checkout of 403", 403},
		{"PUT /rest/V1/carts/mine/order", "closed", 410}, {"POST /rest/all/async/bulk/V1/guest-carts/7/order/", "closed", 410}, {"PUT /REST/de/v1/carts/mine/order", "closed", 410},
		{"GET /quiet", "", 404}, {"POST /v2/api/orders", "closed", 404}, {"POST /v2/api//orders/", "closed", 404},
	} {
		answer := s.AnswerTo(asks(c.line))
		if got := shop.Take(); len(got) > 0 || answer.Status != c.status || answer.Header.Get("Stockgate-Refusal") != "closed_door" || !strings.Contains(answer.Body, c.body) || c.body == "" && answer.Body != "" {
			t.Errorf("%s: the client got %d %s, the shop %+v", c.line, answer.Status, answer.Body, got)
		}
	}
	passesAll(s, shop, asks("GET /api/order"), asks("GET /?wc-ajax=checkout"), asks("POST /?wc-ajax=cart"), asks("GET /rest/V1/carts/mine/order"), asks("POST /rest/V1/carts/mine/items"),
		asks("POST /v2/other"), asks("POST /quieter"), asks("POST /wp-json/batch/v2"))
	takesAll(s, shop, asks("POST /api/order"))
	if n := around(s, "refused"); n != 0 {
		t.Errorf("%d requests are counted as a fault of the configuration", n)
	}
}

// TestADoorOfAnotherGuard: a site of its own may leave a way open that another site closes.
func TestADoorOfAnotherGuard(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, fmt.Sprintf(`
	@public not header X-Staff yes
	handle @public {
		stockgate_guard {
			close /api/orders
		}
		reverse_proxy %[1]s
	}
	handle {
		stockgate_guard
		reverse_proxy %[1]s
	}
	`, shop.Addr()))
	passesAll(s, shop, asks("POST /api/orders", "X-Staff: yes"))
	if answer := s.AnswerTo(asks("POST /api/orders/")); answer.Status != http.StatusNotFound || len(shop.Take()) > 0 {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
}

// TestDoorsThatCannotClose: what is wrong with a door in JSON is an error when it is loaded.
func TestDoorsThatCannotClose(t *testing.T) {
	for doors, want := range map[string]string{
		`[{"match":[]}]`:                                   "it names no request",
		`[{"match":[{"header":{"X":["y"]}}]}]`:             "the matcher header cannot close a door",
		`[{"match":[{"expression":"true"}]}]`:              "the matcher expression cannot close a door",
		`[{"match":[{"method":["POST"]}]}]`:                "would close the whole site",
		`[{"match":[{"path":["/x"]}],"status":99}]`:        "status 99",
		`[{"match":[{"path":["/x"]}],"style":"no-style"}]`: "no-style",
	} {
		var config caddy.Config
		text := `{"apps":{"http":{"servers":{"one":{"routes":[{"handle":[{"handler":"stockgate_guard","close":` + doors + `}]}]}}}}}`
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		if err := caddy.Validate(&config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", doors, err)
		}
	}
}

// TestAvoidableGates: a gate that a client can avoid by what it sends has a warning when it is loaded and
// in the doctor, also where the matcher is around it.
func TestAvoidableGates(t *testing.T) {
	const rules = "{\nbuyer {header.X-User-Id}\nline {json.sku}\n}\n"
	s := sitetest.OpenCaddyfile(t, "respond 201")
	for routes, want := range map[string]string{
		"@order {\nmethod POST\nheader Content-Type application/json*\n}\nstockgate @order " + rules:                                          "matcher header ",
		"@json header Content-Type application/json*\nhandle @json {\nstockgate /order " + rules + "}\n":                                      "matcher header ",
		"@other not header X-Form yes\nroute @other {\nhandle {\nstockgate /order " + rules + "}\n}\n":                                        "matcher header ",
		"@order expression `method('POST') && {http.request.uri.query.route} == 'checkout/confirm'`\nstockgate @order " + rules:               "reads the query",
		"@order {\nmethod POST\nvars {http.request.uri.query.route} checkout/confirm\n}\nhandle @order {\nstockgate " + rules + "}\n":         "reads the query",
		"@order {\nmethod POST\nprotocol http/2+\n}\nstockgate_check @order {\nline {json.sku}\n}\n":                                          "matcher protocol ",
		"@order {\nmethod POST\npath /order\nquery route=x\nnot query preview=1\n}\n@x header X y\nrespond @x 404\nstockgate @order " + rules: "",
	} {
		if err := s.LoadCaddyfile("stockgate_guard\n" + routes); err != nil {
			t.Fatal(err)
		}
		doctor := s.Admin("GET", "/stockgate/doctor", "").Body
		if strings.Contains(doctor, "the gate's matcher") != (want != "") || !strings.Contains(doctor, want) {
			t.Errorf("%s: the doctor says %s", routes, doctor)
		}
	}
}
