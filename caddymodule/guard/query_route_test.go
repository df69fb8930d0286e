package guard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// refusesAll sends requests that some server takes for an order. They must be refused.
func refusesAll(s *sitetest.Site, shop *sitetest.Backend, requests ...string) {
	s.T.Helper()
	for _, request := range requests {
		answer := s.AnswerTo(request)
		line, _, _ := strings.Cut(request, "\n")
		if got := shop.Take(); len(got) > 0 || answer.Status != http.StatusBadRequest || answer.Header.Get("Stockgate-Refusal") != "malformed" {
			s.T.Errorf("%.100s: the client got %d %s, the shop %+v", line, answer.Status, answer.Body, got)
		}
	}
}

// passesAll sends requests that no server takes for an order.
func passesAll(s *sitetest.Site, shop *sitetest.Backend, requests ...string) {
	s.T.Helper()
	for _, request := range requests {
		answer := s.AnswerTo(request)
		line, _, _ := strings.Cut(request, "\n")
		if got := shop.Take(); len(got) != 1 {
			s.T.Errorf("%.100s: the client got %d %s, the shop %+v", line, answer.Status, answer.Body, got)
		}
	}
}

// TestQueryRouteSpellings has the names and values that PHP reads as a parameter of also_query.
func TestQueryRouteSpellings(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, fmt.Sprintf(gatedSite, shop.Addr()))
	refusesAll(s, shop,
		asks("POST /?rest[route=/api/order"), asks("POST /?rest%5Broute=/api/order"), asks("POST /?rest%20route=/api/order"), asks("POST /?rest+route=/api/order"),
		asks("POST /?rest_route%00=/api/order"), asks("POST /?rest_route[]=/api/order"), asks("POST /?rest_route=/api/order;x"), asks("POST /?x;rest_route=/api/order"),
		asks("POST /?rest_route=/api/order&x=%zz"), asks("POST /?rest_route=/api/order&x;y"), asks("POST /?%zz&rest_route=%2Fapi%2Forder"))
	passesAll(s, shop,
		asks("POST /?rest_route=/api/other;x"), asks("POST /?the_rest_route=/api/order"), asks("POST /?rest=/api/order"), asks("POST /?x=%zz&s=a;b"))
}

// TestQueryRouteBelowAPrefix has the recipe of WooCommerce: what rest_route says is below /wp-json.
func TestQueryRouteBelowAPrefix(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	site := "@order {\nmethod POST\npath /wp-json/wc/store/v1/checkout\n}\nstockgate_guard\nstockgate @order {\nbuyer {header.X-User-Id}\nline {json.sku}\nalso_query rest_route=/wp-json\n}\n" +
		"reverse_proxy " + shop.Addr() + "\n"
	s := sitetest.OpenCaddyfile(t, site)
	refusesAll(s, shop,
		asks("POST /?rest_route=/wc/store/v1/checkout"), asks("POST /index.php?rest_route=wc/store/v1/checkout/"), asks("POST /?rest.route=%2FWC%2Fstore%2Fv1%2Fcheckout"),
		asks("POST /shop/?rest_route=//wc/store/v1/checkout;x"), asks("POST /?rest_route=/wc/store/v1/x&rest_route=/wc/store/v1/checkout"))
	passesAll(s, shop,
		asks("POST /?rest_route=/wc/store/v1/cart"), asks("POST /?rest_route=/wp-json/wc/store/v1/checkout"), asks("GET /?rest_route=/wc/store/v1/checkout"))
	for _, wrong := range []string{"rest_route=", "rest_route=wp-json", "=/wp-json", "rest_route=/wp-json/../x"} {
		if err := s.LoadCaddyfile(strings.Replace(site, "rest_route=/wp-json", wrong, 1)); err == nil || !strings.Contains(err.Error(), "write the parameter's name") {
			t.Errorf("also_query %s: %v", wrong, err)
		}
	}
}
