package caddymodule_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// refusesAll sends requests that some server takes for an order. They must be refused.
func (s *site) refusesAll(shop *backend, requests ...string) {
	s.t.Helper()
	for _, request := range requests {
		answer := s.says(request)
		line, _, _ := strings.Cut(request, "\n")
		if got := shop.take(); len(got) > 0 || answer.Status != http.StatusBadRequest || answer.Header.Get("Stockgate-Refusal") != "malformed" {
			s.t.Errorf("%.100s: the client got %d %s, the shop %+v", line, answer.Status, answer.Body, got)
		}
	}
}

// passesAll sends requests that no server takes for an order.
func (s *site) passesAll(shop *backend, requests ...string) {
	s.t.Helper()
	for _, request := range requests {
		answer := s.says(request)
		line, _, _ := strings.Cut(request, "\n")
		if got := shop.take(); len(got) != 1 {
			s.t.Errorf("%.100s: the client got %d %s, the shop %+v", line, answer.Status, answer.Body, got)
		}
	}
}

// TestQueryRouteSpellings has the names and values that PHP reads as a parameter of also_query.
func TestQueryRouteSpellings(t *testing.T) {
	shop := newBackend(t, created)
	s := openCaddyfile(t, fmt.Sprintf(gatedSite, shop.addr()))
	s.refusesAll(shop,
		asks("POST /?rest[route=/api/order"), asks("POST /?rest%5Broute=/api/order"), asks("POST /?rest%20route=/api/order"), asks("POST /?rest+route=/api/order"),
		asks("POST /?rest_route%00=/api/order"), asks("POST /?rest_route[]=/api/order"), asks("POST /?rest_route=/api/order;x"), asks("POST /?x;rest_route=/api/order"),
		asks("POST /?rest_route=/api/order&x=%zz"), asks("POST /?rest_route=/api/order&x;y"), asks("POST /?%zz&rest_route=%2Fapi%2Forder"))
	s.passesAll(shop,
		asks("POST /?rest_route=/api/other;x"), asks("POST /?the_rest_route=/api/order"), asks("POST /?rest=/api/order"), asks("POST /?x=%zz&s=a;b"))
}
