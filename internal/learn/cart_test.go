package learn_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/learn"
)

// graphQLCart is a purchase in which a query with variables shows the cart. The order has the argument cartId.
func graphQLCart(query string, variables any, header map[string]string) []entry {
	at := func(document string, variables any, answer string) entry {
		raw, err := json.Marshal(map[string]any{"query": document, "variables": variables})
		if err != nil {
			panic(err)
		}
		return entry{method: "POST", url: "https://shop.example.com/graphql", header: header, mime: asJSON, body: string(raw), status: 200, answer: answer, answerMime: asJSON}
	}
	return []entry{
		at(query, variables, `{"data":{"cart":{"id":"cart_01JABCD9","lines":[{"sku":"SNK-1","quantity":2}]}}}`),
		at(`mutation Complete($cartId: ID!) { completeCart(cartId: $cartId) { order { code } } }`, map[string]any{"cartId": "cart_01JABCD9"}, `{"data":{"completeCart":{"order":{"code":"SO-77123"}}}}`),
	}
}

// TestLookupsWithVariables looks at carts that are asked for with values of the buyer.
func TestLookupsWithVariables(t *testing.T) {
	session := map[string]string{"Cookie": "sid=c0ffee5e55104"}
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"cust-7781234"}`))
	token := map[string]string{"Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9." + claims + ".c2ln"}
	const byID = "query Cart($id: ID!) { cart(id: $id) { id lines { sku quantity } } }"
	for _, c := range []struct {
		name      string
		query     string
		variables any
		header    map[string]string
		want      string // a line, or a part of the error
		fails     bool
	}{
		{"the id of the cart", byID, map[string]any{"id": "cart_01JABCD9"}, session, `{"query":"` + byID + `","variables":{"id":"{ref}"}}`, false},
		{"constants too", "query Cart($id: ID!, $locale: String, $first: Int, $all: Boolean) { cart(id: $id) { id lines(first: $first) { sku quantity } } }",
			map[string]any{"id": "cart_01JABCD9", "locale": "en", "first": 20, "all": true, "none": nil}, session, `"variables":{"all":true,"first":20,"id":"{ref}","locale":"en"}}`, false},
		{"an object", "query Cart($in: CartInput!) { cart(input: $in) { id lines { sku quantity } } }", map[string]any{"in": map[string]any{"cartId": "cart_01JABCD9"}}, session, `"variables":{"in":{"cartId":"{ref}"}}}`, false},
		{"a claim", "query Cart($customer: String!) { cart(customer: $customer) { id lines { sku quantity } } }", map[string]any{"customer": "cust-7781234"}, token, `"variables":{"customer":"{jwt.sub}"}}`, false},
		{"no variables", "query Cart { cart { id lines { sku quantity } } }", map[string]any{}, session, `{"query":"query Cart { cart { id lines { sku quantity } } }"}`, false},
		{"comments", "# {$HOME} and {env.HOME}\nquery Cart($id: ID!) { # the cart\n cart(id: $id) { id lines { sku quantity } } }", map[string]any{"id": "cart_01JABCD9"}, session, `{"query":"` + byID + `","variables"`, false},
		{"without spaces", "query($id:ID!){cart(id:$id){ref lines{sku quantity}ref}}", map[string]any{"id": "cart_01JABCD9"}, session, `{"query":"query($id:ID!){ cart(id:$id){ ref lines{ sku quantity}ref}}","variables"`, false},
		{"of the session", byID, map[string]any{"id": "sess_99AABB77"}, session, "cannot be asked for with what the order request carries", true},
		{"the buyer's e-mail", "query Cart($email: String!) { cart(email: $email) { id lines { sku quantity } } }", map[string]any{"email": "canary@mail.test"}, session, "cannot be asked for", true},
		{"a number of one buyer", "query Cart($id: Int!) { cart(id: $id) { id lines { sku quantity } } }", map[string]any{"id": 7712345}, session, "cannot be asked for", true},
		{"a name of one buyer", byID, map[string]any{"id": "cart_01JABCD9", "canary@mail.test": 1}, session, `"variables":{"id":"{ref}"}}`, false},
		{"an array", "query Cart($ids: [ID!]) { cart(ids: $ids) { id lines { sku quantity } } }", map[string]any{"ids": []any{"cart_01JABCD9"}}, session, "cannot be asked for", true},
		{"two operations", byID + " query Other { shop }", map[string]any{"id": "cart_01JABCD9"}, session, "names no item", true},
	} {
		l, err := learned(t, graphQLCart(c.query, c.variables, c.header))
		if err != nil || c.fails {
			if !c.fails || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		file := l.Caddyfile(learn.Addresses{})
		if !strings.Contains(file, c.want) || strings.Contains(file, "01JABCD9") || strings.Contains(file, "7781234") {
			t.Errorf("%s: no %s in\n%s", c.name, c.want, file)
		}
		if byRef := strings.Contains(file, "{ref}"); byRef != strings.Contains(file, "ref {graphql.cartId}") || byRef && strings.Contains(file, "one_at_a_time {lookup") {
			t.Errorf("%s: the ref is another one:\n%s", c.name, file)
		}
	}
}

// TestLookupsWithAQuery looks at carts that are asked for with values in the URL.
func TestLookupsWithAQuery(t *testing.T) {
	session := map[string]string{"Cookie": "sid=c0ffee5e55104"}
	for _, c := range []struct{ name, cart, order, want, question string }{
		{"the id in the body", "/api/carts/cart_01JABCD9", `{"cartId":"cart_01JABCD9","pay":"card"}`, "lookup GET http://127.0.0.1:9000/api/carts/{ref}\n", ""},
		{"the id in the query", "/api/cart?id=cart_01JABCD9&lang=en&fields=id,+items,*lines", `{"cartId":"cart_01JABCD9"}`, "/api/cart?id={ref}&lang=en&fields=id,+items,*lines\n", ""},
		{"what changes each time", "/api/cart?_=1767225600123&guest=cart_01JXYZ99", `{"pay":"card"}`, "lookup GET http://127.0.0.1:9000/api/cart\n", "that are in no part of the order: _, guest."},
	} {
		order := purchase()[1]
		order.body = c.order
		l, err := learned(t, []entry{{method: "GET", url: "https://shop.example.com" + c.cart, header: session, status: 200, answer: `{"items":[{"sku":"SNK-1","quantity":2}]}`, answerMime: asJSON}, order})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		file := l.Caddyfile(learn.Addresses{})
		if !strings.Contains(file, c.want) || strings.Contains(file, "01J") || c.question != "" && !strings.Contains(l.QuestionsFile(nil), c.question) {
			t.Errorf("%s: no %s in\n%s%s", c.name, c.want, file, l.QuestionsFile(nil))
		}
	}
}

// TestOrderAskedByGraphQL looks at the order afterwards, by what names its cart.
func TestOrderAskedByGraphQL(t *testing.T) {
	session := map[string]string{"Cookie": "sid=c0ffee5e55104"}
	const cart = "query Cart($id: ID!) { cart(id: $id) { id lines { sku quantity } } }"
	for _, c := range []struct {
		name, query, answer string
		variables           map[string]any
		want                string // empty: the gate does not ask
	}{
		{"by its cart", "query Order($cart: ID!) { order(cart: $cart) { state lines { sku quantity } } }", `{"data":{"order":{"cartId":"cart_01JABCD9","state":"PLACED","lines":[{"sku":"SNK-1","quantity":2}]}}}`,
			map[string]any{"cart": "cart_01JABCD9"}, `"variables":{"cart":"{ref}"}}`},
		{"by a number that only the answer has", "query Order($code: String!) { order(code: $code) { state lines { sku quantity } } }", `{"data":{"order":{"state":"PLACED","lines":[{"sku":"SNK-1","quantity":2}]}}}`, map[string]any{"code": "SO-77123"}, ""},
		{"by nothing", "query Last { lastOrder { state lines { sku quantity } } }", `{"data":{"lastOrder":{"state":"PLACED","lines":[{"sku":"SNK-1","quantity":2}]}}}`, nil, ""},
		{"another order", "query Order($cart: ID!) { order(cart: $cart) { state lines { sku quantity } } }", `{"data":{"order":{"state":"PLACED","lines":[{"sku":"SNK-1","quantity":1}]}}}`, map[string]any{"cart": "cart_01JABCD9"}, ""},
	} {
		entries := graphQLCart(cart, map[string]any{"id": "cart_01JABCD9"}, session)
		raw, err := json.Marshal(map[string]any{"query": c.query, "variables": c.variables})
		if err != nil {
			t.Fatal(err)
		}
		after := entries[0]
		after.body, after.answer = string(raw), c.answer
		l, err := learned(t, append(entries, after))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		file := l.Caddyfile(learn.Addresses{})
		if asks := strings.Contains(file, "outcome ask POST"); asks != (c.want != "") || !strings.Contains(file, c.want) || asks && !strings.Contains(file, "json data.order.cartId {ref}") {
			t.Errorf("%s:\n%s", c.name, file)
		}
	}
}
