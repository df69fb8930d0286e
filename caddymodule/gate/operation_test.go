package gate_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// graphQLSite is a shop that takes all operations at /shop-api, behind a gate.
func graphQLSite(t *testing.T, shop *sitetest.Backend) *sitetest.Site {
	return sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate /shop-api* pay {
		graphql placeOrder
		outcome backend
		buyer   {header.X-User-Id}
		line    {graphql.input.sku} {graphql.input.quantity}
	}
	reverse_proxy `+shop.Addr())
}

// At a path where a shop takes all its operations, those that buy are reserved and have a
// token; all others reach the shop as they came, and are no attempts.
func TestGraphQLOperations(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := graphQLSite(t, shop)
	send := func(method, uri, body string) *http.Request {
		r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", "u1"), body)
		r.Method = method
		var err error
		if r.URL, err = r.URL.Parse(uri); err != nil {
			t.Fatal(err)
		}
		return r
	}
	const buy = `{"query":"mutation Buy($in: In!) { a: placeOrder(input: $in) { code } }","variables":{"in":{"sku":"plain","quantity":2}}}`
	s.Send(send("POST", "/shop-api", buy)).Is(t, 201, "")
	if got := shop.Take(); len(got) != 1 || got[0].Body != buy || sitetest.ClaimsOf(t, got[0].Header.Get("Stockgate-Token")).Sub != "u1" {
		t.Errorf("the shop got %v", got)
	}
	if got := s.StockOf("plain"); got != "100 98 2 0 0" {
		t.Errorf("stock %s", got)
	}

	for _, other := range []struct{ method, uri, body string }{
		{"POST", "/shop-api", `{ "query" : "{ products { sku } }" }`},
		{"POST", "/shop-api?languageCode=en", `{"operationName":null,"query":"mutation { addItem(id: 1) { code } }"}`},
		{"POST", "/shop-api", `[{"query":"{ products { sku } }"},{"id":"2","query":"{ me { name } }"}]`},
		{"GET", "/shop-api?query={products{sku}}", ""},
		{"GET", "/shop-api/assets/a%2Fb", ""},
		{"GET", "/shop-api", ""},
		{"OPTIONS", "/shop-api", ""},
	} {
		s.Send(send(other.method, other.uri, other.body)).Is(t, 201, "")
		got := shop.Take()
		if len(got) != 1 || got[0].Body != other.body || got[0].URI != other.uri || got[0].Header.Get("Stockgate-Token") != "" {
			t.Errorf("%v: the shop got %v", other, got)
		}
	}

	for _, unclear := range []struct{ uri, body, cause string }{
		{"/shop-api", `[` + buy + `]`, "batch"},
		{"/shop-api", `{"query":"{ a }","Query":"mutation { placeOrder }"}`, "body"},
		{"/shop-api", `{"query":"mutation { placeOrder(input: {}) { code } other }"}`, "fields"},
		{"/shop-api/x", `{"query":"mutation { placeOrder @skip(if: $no) { code } }"}`, "directive"},
		{"/shop-api?query=mutation{placeOrder}", `{"query":"{ a }"}`, "query_parameters"},
	} {
		s.Send(send("POST", unclear.uri, unclear.body)).Is(t, 400, "malformed")
		if !strings.Contains(s.Admin("GET", "/metrics", "").Body, `stockgate_unclear_total{cause="`+unclear.cause+`"} 1`) {
			t.Errorf("%s is not counted", unclear.cause)
		}
	}
	answer := s.Send(send("POST", "/shop-api", `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"ab"}}}`))
	if answer.Status != 200 || !strings.Contains(answer.Body, "PERSISTED_QUERY_NOT_FOUND") {
		t.Errorf("a hash is answered with %v", answer)
	}
	s.Send(send("POST", "/shop-api", `{"query":"mutation { placeOrder(input: {sku: \"two\", quantity: 1}) { code } }"}`)).Is(t, 404, "unknown_region")
	if got := shop.Take(); len(got) != 0 {
		t.Errorf("the shop got %v", got)
	}
	if got := s.StockOf("plain"); got != "100 98 2 0 0" {
		t.Errorf("stock %s", got)
	}
}

// A query has the field of an order too, and asks about one: it goes on as it came, unless the shop
// takes orders by queries and the gate says so.
func TestGraphQLQueries(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	site := func(field string) string {
		return `stockgate_guard
	stockgate /shop-api* pay {
		graphql ` + field + `
		outcome backend
		buyer {header.X-User-Id}
		line {graphql.sku} {graphql.quantity}
	}
	stockgate_check /check* {
		graphql ` + field + `
		line {graphql.sku}
	}
	reverse_proxy ` + shop.Addr()
	}
	s := sitetest.OpenCaddyfile(t, site("order"))
	buyer := "u1"
	send := func(path, document string) *http.Request {
		r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", buyer), `{"query":"`+document+`"}`)
		r.URL.Path = path
		return r
	}
	const asks, buys, takes = `query { order(id: 7) { status } }`, `query { order(sku: \"few\", quantity: 2) { price } }`, `mutation { ...F } fragment F on Mutation { order(sku: \"few\", quantity: 1) { id } }`
	check := func(document string, status int, reason string, reserved bool) {
		t.Helper()
		s.Send(send("/shop-api", document)).Is(t, status, reason)
		if got := shop.Take(); status == 201 && (len(got) != 1 || (got[0].Header.Get("Stockgate-Token") != "") != reserved) {
			t.Errorf("%s: the shop got %v", document, got)
		}
	}
	check(asks, 201, "", false)
	check(buys, 201, "", false)
	check(takes, 201, "", true)
	s.Send(send("/check", `{ order(sku: \"nothing\") { price } }`)).Is(t, 201, "")
	s.Send(send("/check", `mutation { order(sku: \"nothing\") { id } }`)).Is(t, 404, "unknown_item")
	if got := s.StockOf("few"); got != "3 2 1 0 0" {
		t.Errorf("stock %s", got)
	}
	if err := s.LoadCaddyfile(site("query.order")); err != nil {
		t.Fatal(err)
	}
	s.Refresh()
	shop.Take()
	buyer = "u2"
	check(asks, 400, "malformed", false)
	check(takes, 201, "", false)
	check(buys, 201, "", true)
	if got := s.StockOf("few"); got != "3 0 3 0 0" {
		t.Errorf("stock %s", got)
	}
}

// stockgate_check knows the same operations.
func TestGraphQLCheck(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate_check /shop-api* {
		graphql addItem
		line {graphql.sku}
	}
	reverse_proxy `+shop.Addr())
	send := func(body string) *http.Request {
		r := sitetest.WithBody(sitetest.NewOrder(), body)
		r.URL.Path = "/shop-api"
		return r
	}
	s.Send(send(`{"query":"mutation { addItem(sku: \"nothing\") }"}`)).Is(t, 404, "unknown_item")
	s.Send(send(`{"query":"mutation { addItem(sku: \"plain\") }"}`)).Is(t, 201, "")
	s.Send(send(`{"query":"mutation { other(sku: \"nothing\") }"}`)).Is(t, 201, "")
	if got := shop.Take(); len(got) != 2 {
		t.Errorf("the shop got %v", got)
	}
}

// A list of objects among the arguments gives the lines of an attempt, all or nothing, wherever the
// client has written them.
func TestGraphQLLines(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	s := sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate_check /shop-api* add {
		graphql addItems
		lines {graphql.inputs} variant count
		other_items pass
	}
	stockgate /shop-api* pay {
		graphql order
		outcome backend
		buyer {header.X-User-Id}
		lines {graphql.input.lines} variant.sku count
	}
	reverse_proxy `+shop.Addr())
	send := func(buyer, body string) *http.Request {
		r := sitetest.WithBody(sitetest.NewOrder("X-User-Id", buyer), body)
		r.URL.Path = "/shop-api"
		return r
	}
	lines := func(items string) string {
		return `{"query":"mutation M($l: [L!]!, $n: Int) { order(input: {lines: $l}) { code } }","variables":{"l":` + items + `}}`
	}
	s.Send(send("u1", lines(`[{"variant":{"sku":"plain"},"count":2},{"variant":{"sku":"few"}}]`))).Is(t, 201, "")
	s.Send(send("u2", `{"query":"mutation M($n: Int = 3) { order(input: {lines: [{variant: {sku: \"plain\"}, count: $n}]}) { code } }"}`)).Is(t, 201, "")
	if got := s.StockOf("plain") + ", " + s.StockOf("few"); got != "100 95 5 0 0, 3 2 1 0 0" {
		t.Errorf("stock %s", got)
	}
	if got := shop.Take(); len(got) != 2 || got[0].Header.Get("Stockgate-Token") == "" {
		t.Errorf("the shop got %v", got)
	}
	s.Send(send("u3", lines(`[{"variant":{"sku":"plain"}},{"variant":{"sku":"few"},"count":3}]`))).Is(t, 409, "all_held")
	s.Send(send("u3", lines(`[]`))).Is(t, 409, "no_cart")
	for _, malformed := range []string{
		lines(`null`), lines(`[1]`), lines(`[{"variant":{"sku":"plain"},"Count":2}]`),
		`{"query":"mutation { order(input: {lines: [{variant: {sku: \"plain\"}, count: 1, count: 2}]}) { code } }"}`,
		`{"query":"mutation { order(input: {lines: [{variant: {sku: \"plain\"}, count: $n}]}) { code } }"}`,
		`{"query":"mutation { order(input: {}) { code } }"}`,
	} {
		s.Send(send("u3", malformed)).Is(t, 400, "malformed")
	}
	if got := s.StockOf("plain") + ", " + s.StockOf("few"); got != "100 95 5 0 0, 3 2 1 0 0" {
		t.Errorf("stock %s", got)
	}
	if got := shop.Take(); len(got) != 0 {
		t.Errorf("the shop got %v", got)
	}
	// a check looks at every line that a sale lists
	add := func(items string) *http.Request {
		return send("", `{"query":"mutation { addItems(inputs: `+items+`) }"}`)
	}
	s.Send(add(`[{variant: \"ordinary\", count: 9}, {variant: \"few\", count: 1}]`)).Is(t, 201, "")
	s.Send(add(`{variant: \"ordinary\", count: 9}`)).Is(t, 201, "")
	s.Send(add(`[{variant: \"ordinary\"}, {variant: \"plain\"}]`)).Is(t, 201, "")
	s.Send(add(`[{variant: \"ordinary\"}, {variant: \"plain\"}, {variant: \"two\"}]`)).Is(t, 404, "unknown_region")
}

// TestWebsocketsPass: a websocket goes on where the gate says that no order comes over one.
func TestWebsocketsPass(t *testing.T) {
	shop := sitetest.NewBackend(t, sitetest.Created)
	const socket = "GET /shop-api HTTP/1.1\nHost: shop\nConnection: Upgrade\nUpgrade: websocket\n\n"
	for option, passes := range map[string]bool{"websockets pass": true, "": false} {
		s := sitetest.OpenCaddyfile(t, "stockgate_guard\nstockgate /shop-api* {\nbuyer {header.X-User-Id}\ngraphql placeOrder\nline {graphql.sku}\noutcome backend\n"+option+"\n}\nreverse_proxy "+shop.Addr())
		answer := s.AnswerTo(socket)
		if got := shop.Take(); (len(got) == 1) != passes || passes && got[0].Header.Get("Upgrade") != "websocket" || !passes && answer.Status != 400 {
			t.Errorf("%q: %d %s, the shop got %+v", option, answer.Status, answer.Body, got)
		}
	}
	s := sitetest.OpenCaddyfile(t, "respond 200")
	for option, want := range map[string]string{"websockets on\ngraphql placeOrder": "there is only pass", "websockets pass": "neither graphql nor json_body"} {
		err := s.LoadCaddyfile("stockgate_guard\nstockgate /shop-api* {\nbuyer {header.X-User-Id}\nline {json.sku}\noutcome backend\n" + option + "\n}\nreverse_proxy " + shop.Addr())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", option, err)
		}
	}
}
