package selfcheck_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// testShop is an invented shop. Its own stock is endless: the gate alone keeps the limit.
type testShop struct {
	handler   http.Handler
	buy       func(b *browser, name string) (took bool) // a purchase, from the first page to the last
	answers   func(directives string) string            // what an operator changes
	noRefusal bool                                      // is recorded
	atServer  bool                                      // the recording has the provider's webhook too

	url     string
	refuses atomic.Bool // an order, as sold out
	orders  atomic.Int64
	mu      sync.Mutex
	issued  []string // sessions and tokens
}

// secrets are the credentials that it has given out.
func (s *testShop) secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issued
}

func (s *testShop) issue(secret string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued = append(s.issued, secret)
	return secret
}

// order takes an order, or not.
func (s *testShop) order() (number string, took bool) {
	if s.refuses.Load() {
		return "", false
	}
	return fmt.Sprint("SO-", 100000+s.orders.Add(1)), true
}

var shops = map[string]func(*testing.T) *testShop{
	"a form with a session":          formShop,
	"JSON with a JWT":                jsonShop,
	"GraphQL with persisted queries": graphQLShop,
	"GraphQL with ids of carts":      graphQLCartShop,
	"200 with a code":                codeShop,
	"a payment page and its webhook": paymentShop,
	"a webhook in the recording":     recordedPaymentShop,
	"a cart in the path":             cartShop,
	"one path for all":               actionShop,
}

// sessions of a shop by their cookie.
type sessions struct {
	shop *testShop
	mu   sync.Mutex
	of   map[string]string
}

func (s *sessions) begin(w http.ResponseWriter, cookie, user string) {
	id := s.shop.issue(rand.Text())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[string]string)
	}
	s.of[id] = user
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: id, Path: "/", HttpOnly: true})
}

func (s *sessions) user(r *http.Request, cookie string) string {
	c, err := r.Cookie(cookie)
	if err != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[c.Value]
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func readJSON(r *http.Request) map[string]any {
	var v map[string]any
	json.NewDecoder(r.Body).Decode(&v)
	return v
}

// formShop has pages, a session, and redirects.
func formShop(*testing.T) *testShop {
	s := new(testShop)
	in := &sessions{shop: s}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		in.begin(w, "shop_session", r.FormValue("email"))
		http.Redirect(w, r, "/account", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /product/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, `<form action="/order" method="post"><input type="hidden" name="sku" value="SNK-1"><input name="qty" value="1"></form>`)
	})
	mux.HandleFunc("GET /account.json", func(w http.ResponseWriter, r *http.Request) {
		if in.user(r, "shop_session") == "" {
			writeJSON(w, 401, map[string]any{})
			return
		}
		writeJSON(w, 200, map[string]any{"user": map[string]any{"id": "u-" + in.user(r, "shop_session"), "email": "canary@mail.test", "name": "Cana Rybird"}})
	})
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, r *http.Request) {
		number, took := s.order()
		if !took {
			http.Redirect(w, r, "/sold-out", http.StatusSeeOther)
			return
		}
		http.Redirect(w, r, "/thanks/"+number, http.StatusSeeOther)
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<p>Welcome, Cana Rybird</p>")
	})
	s.handler = mux
	s.buy = func(b *browser, name string) bool {
		b.get("/")
		b.form("/login", "email", name+"@mail.test", "password", "canary-pass")
		b.get("/account.json")
		b.get("/product/sneaker")
		a := b.form("/order", "sku", "SNK-1", "qty", "1", "_csrf", "canary-csrf", "street", "Canarystreet 5", "phone", "+49 171 5550199")
		to := a.Header.Get("Location")
		if to != "" {
			b.get(to)
		}
		return strings.HasPrefix(to, "/thanks/")
	}
	return s
}

const jwtSecret = "the-secret-of-this-invented-shop-32-bytes"

// signed makes a token of the shop.
func (s *testShop) signed(user string) string {
	encode := base64.RawURLEncoding.EncodeToString
	claims, _ := json.Marshal(map[string]any{"iss": "https://id.example.com", "sub": "cust-" + user, "email": "canary@mail.test", "exp": 4000000000})
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(claims)
	mac := hmac.New(sha256.New, []byte(jwtSecret))
	mac.Write([]byte(text))
	return s.issue(text + "." + encode(mac.Sum(nil)))
}

// jsonShop has an API with bearer tokens and several lines in one order.
func jsonShop(t *testing.T) *testShop {
	t.Setenv("SHOP_JWT_SECRET", jwtSecret)
	s := new(testShop)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/login", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, 200, map[string]any{"token": s.signed(fmt.Sprint(readJSON(r)["login"]))})
	})
	mux.HandleFunc("GET /api/v1/products", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, 200, []any{map[string]any{"sku": "SNK-2", "title": "Sneaker", "price": 19900}})
	})
	mux.HandleFunc("POST /api/v1/orders", func(w http.ResponseWriter, r *http.Request) {
		number, took := s.order()
		if !took {
			writeJSON(w, 409, map[string]any{"error": "sold_out", "message": "This item is sold out."})
			return
		}
		writeJSON(w, 201, map[string]any{"order": map[string]any{"id": number, "email": "canary@mail.test"}})
	})
	s.handler = mux
	s.buy = func(b *browser, name string) bool {
		var in struct{ Token string }
		b.post("/api/v1/login", map[string]any{"login": name, "password": "canary-pass"}).json(&in)
		b.token = in.Token
		b.get("/api/v1/products")
		b.header = map[string]string{"Idempotency-Key": s.issue(rand.Text())}
		a := b.post("/api/v1/orders", map[string]any{
			"items":    []any{map[string]any{"sku": "SNK-2", "quantity": 1}},
			"shipping": map[string]any{"name": "Cana Rybird", "street": "Canarystreet 5", "phone": "+49 171 5550199"}, "card": "4111111111111111",
		})
		return a.StatusCode == 201
	}
	return s
}

// codeShop answers 200 whatever happens.
func codeShop(*testing.T) *testShop {
	s := new(testShop)
	in := &sessions{shop: s}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/user/login", func(w http.ResponseWriter, r *http.Request) {
		in.begin(w, "sid", fmt.Sprint(readJSON(r)["phone"]))
		writeJSON(w, 200, map[string]any{"code": 0, "msg": "ok"})
	})
	mux.HandleFunc("GET /api/goods/list", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, 200, map[string]any{"code": 0, "data": []any{map[string]any{"skuId": 20002001, "left": 100}}})
	})
	mux.HandleFunc("POST /api/order/create", func(w http.ResponseWriter, r *http.Request) {
		number, took := s.order()
		if !took {
			writeJSON(w, 200, map[string]any{"code": 30001, "msg": "The goods are sold out"})
			return
		}
		writeJSON(w, 200, map[string]any{"code": 0, "msg": "ok", "data": map[string]any{"orderNo": number, "receiver": "Cana Rybird"}})
	})
	s.handler = mux
	s.buy = func(b *browser, name string) bool {
		b.post("/api/user/login", map[string]any{"phone": "+49 171 5550199", "password": "canary-pass"})
		b.get("/api/goods/list")
		var got struct{ Code int }
		b.post("/api/order/create", map[string]any{"skuId": 20002001, "num": 1, "receiver": "Cana Rybird", "mobile": "+49 171 5550199"}).json(&got)
		return got.Code == 0
	}
	return s
}

// cartShop keeps carts, whose ids are in the paths, and tells about its orders.
func cartShop(*testing.T) *testShop {
	s := new(testShop)
	in := &sessions{shop: s}
	type cart struct {
		user, order string
		lines       []any
	}
	var mu sync.Mutex
	carts, orders := make(map[string]*cart), make(map[string]*cart)
	mux := http.NewServeMux()
	of := func(handle func(w http.ResponseWriter, id string, c *cart)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			c := carts[r.PathValue("id")]
			if c == nil || c.user != in.user(r, "connect.sid") {
				writeJSON(w, 404, map[string]any{})
				return
			}
			handle(w, r.PathValue("id"), c)
		}
	}
	show := func(w http.ResponseWriter, id string, c *cart) {
		writeJSON(w, 200, map[string]any{"cart": map[string]any{"id": id, "email": "canary@mail.test", "customer": map[string]any{"id": "cus-" + c.user}, "items": c.lines}})
	}
	mux.HandleFunc("POST /auth/session", func(w http.ResponseWriter, r *http.Request) {
		in.begin(w, "connect.sid", fmt.Sprint(readJSON(r)["email"]))
		writeJSON(w, 200, map[string]any{})
	})
	mux.HandleFunc("POST /store/carts", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		id := "cart_" + rand.Text()
		carts[id] = &cart{user: in.user(r, "connect.sid")}
		show(w, id, carts[id])
	})
	mux.HandleFunc("POST /store/carts/{id}/line-items", of(func(w http.ResponseWriter, id string, c *cart) {
		c.lines = []any{map[string]any{"id": "item_1", "variant": map[string]any{"id": "variant_7", "sku": "SNK-7"}, "quantity": 1}}
		show(w, id, c)
	}))
	mux.HandleFunc("GET /store/carts/{id}", of(show))
	mux.HandleFunc("POST /store/carts/{id}/complete", of(func(w http.ResponseWriter, id string, c *cart) {
		number, took := s.order()
		if !took {
			writeJSON(w, 200, map[string]any{"type": "cart", "error": "sold out"})
			return
		}
		c.order = "order_" + rand.Text()
		orders[c.order] = c
		writeJSON(w, 200, map[string]any{"type": "order", "order": map[string]any{"id": c.order, "display_id": number}})
	}))
	mux.HandleFunc("GET /store/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		c := orders[r.PathValue("id")]
		if c == nil {
			writeJSON(w, 404, map[string]any{})
			return
		}
		writeJSON(w, 200, map[string]any{"order": map[string]any{"id": c.order, "status": "placed", "email": "canary@mail.test", "items": c.lines}})
	})
	s.handler = mux
	s.buy = func(b *browser, name string) bool {
		b.post("/auth/session", map[string]any{"email": name + "@mail.test", "password": "canary-pass"})
		var got struct {
			Cart  struct{ ID string }
			Order struct{ ID string }
		}
		b.post("/store/carts", map[string]any{}).json(&got)
		path := "/store/carts/" + s.issue(got.Cart.ID)
		b.post(path+"/line-items", map[string]any{"variant_id": "variant_7", "quantity": 1})
		b.get(path)
		if b.post(path+"/complete", nil).json(&got); got.Order.ID == "" {
			return false
		}
		b.get("/store/orders/" + got.Order.ID)
		return true
	}
	return s
}

// actionShop takes everything at one path.
func actionShop(*testing.T) *testShop {
	s := new(testShop)
	in := &sessions{shop: s}
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := readJSON(r)
		switch q["action"] {
		case "login":
			in.begin(w, "sessid", fmt.Sprint(q["email"]))
			writeJSON(w, 200, map[string]any{"ok": true})
		case "products":
			writeJSON(w, 200, map[string]any{"ok": true, "items": []any{map[string]any{"sku": "SNK-6"}}})
		case "order":
			number, took := s.order()
			if !took {
				writeJSON(w, 200, map[string]any{"ok": false})
				return
			}
			writeJSON(w, 200, map[string]any{"ok": true, "orderNumber": number})
		}
	})
	s.buy = func(b *browser, name string) bool {
		b.post("/api.php", map[string]any{"action": "login", "email": "canary@mail.test", "password": "canary-pass"})
		b.post("/api.php", map[string]any{"action": "products"})
		var got struct{ OK bool }
		b.post("/api.php", map[string]any{"action": "order", "lines": []any{map[string]any{"sku": "SNK-6", "qty": 1}}, "phone": "+49 171 5550199"}).json(&got)
		return got.OK
	}
	return s
}
