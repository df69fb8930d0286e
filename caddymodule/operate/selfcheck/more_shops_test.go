package selfcheck_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// graphQLShop keeps carts, and its clients send the hash of a document first.
func graphQLShop(t *testing.T) *testShop {
	t.Setenv("SHOP_JWT_SECRET", jwtSecret)
	s := new(testShop)
	known := make(map[string]string)
	carts := make(map[string]string)
	var mu sync.Mutex
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := readJSON(r)
		var hash string
		if extensions, ok := q["extensions"].(map[string]any); ok {
			hash = extensions["persistedQuery"].(map[string]any)["sha256Hash"].(string)
		}
		document, _ := q["query"].(string)
		mu.Lock()
		defer mu.Unlock()
		if document == "" {
			document = known[hash]
		}
		if document == "" {
			writeJSON(w, 200, map[string]any{"errors": []any{map[string]any{"message": "PersistedQueryNotFound"}}})
			return
		}
		known[hash] = document
		user := r.Header.Get("Authorization")
		data := map[string]any{}
		switch {
		case strings.Contains(document, "mutation Login"):
			data["login"] = map[string]any{"token": s.signed(q["variables"].(map[string]any)["user"].(string))}
		case strings.Contains(document, "products"):
			data["products"] = []any{map[string]any{"id": "v1", "sku": "SNK-3"}}
		case strings.Contains(document, "addItemToCart"):
			carts[user] = "cart-" + rand.Text()
			data["addItemToCart"] = map[string]any{"id": carts[user]}
		case strings.Contains(document, "activeCart"):
			data["activeCart"] = nil
			if carts[user] != "" {
				data["activeCart"] = map[string]any{"id": carts[user], "customer": map[string]any{"email": "canary@mail.test"}, "lines": []any{map[string]any{"variant": map[string]any{"sku": "SNK-3"}, "quantity": 1}}}
			}
		case strings.Contains(document, "placeOrder") && s.refuses.Load():
			writeJSON(w, 200, map[string]any{"data": nil, "errors": []any{map[string]any{"message": "sold out"}}})
			return
		case strings.Contains(document, "placeOrder"):
			number, _ := s.order()
			delete(carts, user)
			data["placeOrder"] = map[string]any{"order": map[string]any{"code": number}}
		}
		writeJSON(w, 200, map[string]any{"data": data})
	})
	s.buy = func(b *browser, name string) bool {
		var in struct {
			Data struct{ Login struct{ Token string } }
		}
		b.graphQL(`mutation Login($user: String!, $password: String!) { login(user: $user, password: $password) { token } }`, map[string]any{"user": name, "password": "canary-pass"}).json(&in)
		b.token = in.Data.Login.Token
		b.graphQL(`query Products { products { id sku } }`, nil)
		b.graphQL(`mutation Add($id: ID!) { addItemToCart(variantId: $id, quantity: 1) { id } }`, map[string]any{"id": "v1"})
		b.graphQL("query Cart {\n  activeCart { id customer { email } lines { variant { sku } quantity } }\n}", nil)
		var got struct {
			Data struct {
				PlaceOrder *struct{ Order struct{ Code string } }
			}
		}
		b.graphQL(`mutation Place($card: String!) { placeOrder(payment: {card: $card}) { order { code } } }`, map[string]any{"card": "4111111111111111"}).json(&got)
		return got.Data.PlaceOrder != nil
	}
	return s
}

// graphQLCartShop is told by each client which cart it means. Its clients are known by a session.
func graphQLCartShop(*testing.T) *testShop {
	s := new(testShop)
	in := &sessions{shop: s}
	var mu sync.Mutex
	carts := make(map[string]string) // to the user
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := readJSON(r)
		document, _ := q["query"].(string)
		variables, _ := q["variables"].(map[string]any)
		mu.Lock()
		defer mu.Unlock()
		user := in.user(r, "sid")
		cart, _ := variables["cartId"].(string)
		if id, ok := variables["id"].(string); ok {
			cart = id
		}
		mine := user != "" && carts[cart] == user
		data := map[string]any{}
		switch {
		case strings.Contains(document, "mutation Login"):
			in.begin(w, "sid", fmt.Sprint(variables["user"]))
			data["login"] = map[string]any{"ok": true}
		case strings.Contains(document, "createCart"):
			id := s.issue("cart-" + rand.Text())
			carts[id] = user
			data["createCart"] = map[string]any{"id": id}
		case strings.Contains(document, "orderOfCart"):
			data["orderOfCart"] = nil
			if carts[cart] == user+" ordered" {
				data["orderOfCart"] = map[string]any{"id": cart, "state": "PLACED", "lines": []any{map[string]any{"sku": "SNK-8", "quantity": 1}}}
			}
		case strings.Contains(document, "cart(id"):
			data["cart"] = nil
			if mine {
				data["cart"] = map[string]any{"id": cart, "customer": map[string]any{"id": "cust-" + user}, "lines": []any{map[string]any{"sku": "SNK-8", "quantity": 1}}}
			}
		case !mine || s.refuses.Load():
			writeJSON(w, 200, map[string]any{"data": nil, "errors": []any{map[string]any{"message": "sold out"}}})
			return
		default:
			number, _ := s.order()
			carts[cart] = user + " ordered"
			data["completeCart"] = map[string]any{"order": map[string]any{"code": number}}
		}
		writeJSON(w, 200, map[string]any{"data": data})
	})
	s.buy = func(b *browser, name string) bool {
		ask := func(document string, variables map[string]any, into any) {
			b.post("/graphql", map[string]any{"query": document, "variables": variables}).json(into)
		}
		var got struct {
			Data struct {
				CreateCart   struct{ ID string }
				CompleteCart *struct{ Order struct{ Code string } }
			}
		}
		ask(`mutation Login($user: String!, $password: String!) { login(user: $user, password: $password) { ok } }`, map[string]any{"user": name, "password": "canary-pass"}, &got)
		ask(`mutation Create($sku: String!) { createCart(sku: $sku) { id } }`, map[string]any{"sku": "SNK-8"}, &got)
		ask(`query Cart($id: ID!, $locale: String) { cart(id: $id, locale: $locale) { id customer { id } lines { sku quantity } } }`, map[string]any{"id": got.Data.CreateCart.ID, "locale": "en"}, &got)
		ask(`mutation Complete($cartId: ID!) { completeCart(cartId: $cartId) { order { code } } }`, map[string]any{"cartId": got.Data.CreateCart.ID}, &got)
		if got.Data.CompleteCart == nil {
			return false
		}
		ask(`query Order($id: ID!) { orderOfCart(id: $id) { id state lines { sku quantity } } }`, map[string]any{"id": got.Data.CreateCart.ID}, &got)
		return true
	}
	return s
}

// graphQL sends the hash of a document, and the document if the server asks for it.
func (b *browser) graphQL(document string, variables map[string]any) *visit {
	sum := sha256.Sum256([]byte(document))
	body := map[string]any{"variables": variables, "extensions": map[string]any{"persistedQuery": map[string]any{"version": 1, "sha256Hash": hex.EncodeToString(sum[:])}}}
	a := b.post("/graphql", body)
	if strings.Contains(a.text, "PersistedQueryNotFound") {
		body["query"] = document
		a = b.post("/graphql", body)
	}
	return a
}

const hookSecret = "the-secret-of-the-invented-provider"

// paymentShop sends buyers to another company, which tells it by a webhook who has paid.
func paymentShop(t *testing.T) *testShop {
	t.Setenv("WEBHOOK_SECRET", hookSecret)
	s := &testShop{noRefusal: true}
	in := &sessions{shop: s}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /signin", func(w http.ResponseWriter, r *http.Request) {
		in.begin(w, "PHPSESSID", r.FormValue("email"))
		http.Redirect(w, r, "/shop", http.StatusFound)
	})
	mux.HandleFunc("GET /shop/cart", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, 200, map[string]any{"order_no": "C" + s.issue(rand.Text())[:12], "variant": "SNK-5"})
	})
	mux.HandleFunc("POST /shop/checkout", func(w http.ResponseWriter, r *http.Request) {
		pay := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
		http.Redirect(w, r, pay+"/pay?order="+r.FormValue("order_no"), http.StatusSeeOther)
	})
	mux.HandleFunc("POST /hooks/payment", func(w http.ResponseWriter, r *http.Request) {
		s.order()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<p>Pay here, Cana Rybird</p>")
	})
	s.handler = mux
	s.answers = func(directives string) string {
		var out strings.Builder
		for line := range strings.Lines(directives) {
			for _, word := range []string{"stockgate_resolve", "\tverify", "\tref {json", "\t@paid", "\t\tjson", "\t}", "\tconfirm @paid", "}"} {
				if rest, ok := strings.CutPrefix(strings.TrimLeft(line, "\t"), "# "+word); ok {
					line = word + rest
				}
			}
			out.WriteString(line)
		}
		return strings.Replace(out.String(), "/webhooks/payment", "/hooks/payment", 1)
	}
	s.buy = func(b *browser, name string) bool {
		b.form("/signin", "email", name+"@mail.test", "password", "canary-pass")
		var cart struct {
			Order string `json:"order_no"`
		}
		b.get("/shop/cart").json(&cart)
		a := b.form("/shop/checkout", "order_no", cart.Order, "variant", "SNK-5", "quantity", "1", "name", "Cana Rybird")
		if a.StatusCode != http.StatusSeeOther {
			return false
		}
		if b.har != nil {
			b.get(a.Header.Get("Location"))
			return !s.atServer || b.paysRecorded(cart.Order)
		}
		return b.pays(cart.Order)
	}
	return s
}

// recordedPaymentShop is the same shop, and its server makes the recording, so that nothing is left to say of the
// webhook.
func recordedPaymentShop(t *testing.T) *testShop {
	s := paymentShop(t)
	s.atServer, s.answers = true, nil
	return s
}

// paysRecorded is the provider, whose webhook is recorded too. It has no cookies of the buyer.
func (b *browser) paysRecorded(order string) bool {
	provider := newBrowser(b.t, b.base, nil)
	took := provider.pays(order)
	b.har.entries = append(b.har.entries, provider.har.entries...)
	return took
}

// pays is the provider, which tells the shop.
func (b *browser) pays(order string) bool {
	body, _ := json.Marshal(map[string]string{"order": order, "status": "paid"})
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(body)
	b.header = map[string]string{"X-Signature": hex.EncodeToString(mac.Sum(nil))}
	return b.do("POST", "/hooks/payment", "application/json", string(body)).StatusCode == http.StatusNoContent
}
