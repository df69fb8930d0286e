package caddymodule_test

import (
	"net/http"
	"strings"
	"testing"
)

// graphQLSite is a shop that takes all operations at /shop-api, behind a gate.
func graphQLSite(t *testing.T, shop *backend) *site {
	return openCaddyfile(t, `stockgate_guard
	stockgate /shop-api* pay {
		graphql placeOrder
		outcome backend
		buyer   {header.X-User-Id}
		line    {graphql.input.sku} {graphql.input.quantity}
	}
	reverse_proxy `+shop.addr())
}

// At a path where a shop takes all its operations, those that buy are reserved and have a
// token; all others reach the shop as they came, and are no attempts.
func TestGraphQLOperations(t *testing.T) {
	shop := newBackend(t, created)
	s := graphQLSite(t, shop)
	send := func(method, uri, body string) *http.Request {
		r := withBody(order("X-User-Id", "u1"), body)
		r.Method = method
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(uri, "?")
		return r
	}
	const buy = `{"query":"mutation Buy($in: In!) { a: placeOrder(input: $in) { code } }","variables":{"in":{"sku":"plain","quantity":2}}}`
	s.send(send("POST", "/shop-api", buy)).Is(t, 201, "")
	if got := shop.take(); len(got) != 1 || got[0].body != buy || claimsOf(t, got[0].header.Get("Stockgate-Token")).Sub != "u1" {
		t.Errorf("the shop got %v", got)
	}
	if got := s.cell("plain"); got != "100 98 2 0 0" {
		t.Errorf("stock %s", got)
	}

	for _, other := range []struct{ method, uri, body string }{
		{"POST", "/shop-api", `{ "query" : "{ products { sku } }" }`},
		{"POST", "/shop-api?languageCode=en", `{"operationName":null,"query":"mutation { addItem(id: 1) { code } }"}`},
		{"GET", "/shop-api?query={products{sku}}", ""},
		{"GET", "/shop-api", ""},
		{"OPTIONS", "/shop-api", ""},
	} {
		s.send(send(other.method, other.uri, other.body)).Is(t, 201, "")
		got := shop.take()
		if len(got) != 1 || got[0].body != other.body || got[0].uri != other.uri || got[0].header.Get("Stockgate-Token") != "" {
			t.Errorf("%v: the shop got %v", other, got)
		}
	}

	for _, unclear := range []struct{ uri, body, cause string }{
		{"/shop-api", `[` + buy + `]`, "body"},
		{"/shop-api", `{"query":"mutation { placeOrder(input: {}) { code } other }"}`, "fields"},
		{"/shop-api/x", `{"query":"mutation { placeOrder @skip(if: $no) { code } }"}`, "directive"},
		{"/shop-api?query=mutation{placeOrder}", `{"query":"{ a }"}`, "query_parameters"},
	} {
		s.send(send("POST", unclear.uri, unclear.body)).Is(t, 400, "malformed")
		if !strings.Contains(s.Admin("GET", "/metrics", "").Body, `stockgate_unclear_total{cause="`+unclear.cause+`"} 1`) {
			t.Errorf("%s is not counted", unclear.cause)
		}
	}
	answer := s.send(send("POST", "/shop-api", `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"ab"}}}`))
	if answer.Status != 200 || !strings.Contains(answer.Body, "PERSISTED_QUERY_NOT_FOUND") {
		t.Errorf("a hash is answered with %v", answer)
	}
	s.send(send("POST", "/shop-api", `{"query":"mutation { placeOrder(input: {sku: \"two\", quantity: 1}) { code } }"}`)).Is(t, 404, "unknown_region")
	if got := shop.take(); len(got) != 0 {
		t.Errorf("the shop got %v", got)
	}
	if got := s.cell("plain"); got != "100 98 2 0 0" {
		t.Errorf("stock %s", got)
	}
}

// stockgate_check knows the same operations.
func TestGraphQLCheck(t *testing.T) {
	shop := newBackend(t, created)
	s := openCaddyfile(t, `stockgate_guard
	stockgate_check /shop-api* {
		graphql addItem
		line {graphql.sku}
	}
	reverse_proxy `+shop.addr())
	send := func(body string) *http.Request {
		r := withBody(order(), body)
		r.URL.Path = "/shop-api"
		return r
	}
	s.send(send(`{"query":"mutation { addItem(sku: \"nothing\") }"}`)).Is(t, 404, "unknown_item")
	s.send(send(`{"query":"mutation { addItem(sku: \"plain\") }"}`)).Is(t, 201, "")
	s.send(send(`{"query":"mutation { other(sku: \"nothing\") }"}`)).Is(t, 201, "")
	if got := shop.take(); len(got) != 2 {
		t.Errorf("the shop got %v", got)
	}
}
