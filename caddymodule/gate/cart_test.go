package gate_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// cartShop keeps the cart of each session, and sells it without being told what is in it.
type cartShop struct {
	*httptest.Server
	mu      sync.Mutex
	carts   map[string]map[string]int64 // by session and SKU
	orders  map[string]map[string]int64
	lookups int
	asks    int
	// before an order is placed, and before a cart is changed; the shop is not locked.
	paying func(r *http.Request)
	adding func()
	status int // of /pay; 0: 201
	answer http.HandlerFunc
}

func newCartShop(t *testing.T) *cartShop {
	s := &cartShop{carts: make(map[string]map[string]int64), orders: make(map[string]map[string]int64)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /shop/add", func(w http.ResponseWriter, r *http.Request) {
		var line struct {
			SKU      string
			Quantity int64
		}
		if err := json.NewDecoder(r.Body).Decode(&line); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		adding := s.adding
		s.mu.Unlock()
		if adding != nil {
			adding()
		}
		s.put(sessionOf(r), line.SKU, line.Quantity)
	})
	mux.HandleFunc("GET /cart", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lookups++
		if s.answer != nil {
			s.answer(w, r)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "fresh", Value: "1"})
		writeCart(w, sessionOf(r), "open", s.carts[sessionOf(r)])
	})
	mux.HandleFunc("POST /shop/pay", func(w http.ResponseWriter, r *http.Request) {
		if s.paying != nil {
			s.paying(r)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.status/100 <= 2 {
			s.orders[sessionOf(r)] = s.carts[sessionOf(r)]
			delete(s.carts, sessionOf(r))
		}
		w.WriteHeader(max(s.status, 201))
		_, _ = io.WriteString(w, `{"state":"whatever the client likes"}`)
	})
	mux.HandleFunc("GET /orders/{ref}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asks++
		if lines, sold := s.orders[sessionOf(r)]; sold {
			writeCart(w, r.PathValue("ref"), "paid", lines)
			return
		}
		writeCart(w, r.PathValue("ref"), "open", s.carts[sessionOf(r)])
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// sessionOf is the name under which the shop keeps a cart: ann@phone and ann@laptop are two sessions with one cart.
func sessionOf(r *http.Request) string {
	c, err := r.Cookie("session")
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(c.Value, "@")
	return name
}

func writeCart(w io.Writer, id, state string, lines map[string]int64) {
	type line struct {
		Variant  map[string]string `json:"variant"`
		Quantity int64             `json:"quantity"`
	}
	items := []line{}
	for sku, n := range lines {
		items = append(items, line{map[string]string{"sku": sku}, n})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"cart": map[string]any{"id": "cart-" + id, "email": id + "@example.com", "state": state, "items": items}})
}

func (s *cartShop) put(session, sku string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.carts[session] == nil {
		s.carts[session] = make(map[string]int64)
	}
	s.carts[session][sku] += n
}

func (s *cartShop) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *cartShop) counts() (lookups, asks, orders int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lookups, s.asks, len(s.orders)
}

// cartGate are options of a gate before a cartShop.
func cartGate(shop *cartShop) []string {
	return []string{
		`one_at_a_time {header.Authorization} {cookie.session}`,
		`lookup GET ` + shop.URL + "/cart {\ntimeout 20s\n}",
		`buyer  {lookup.cart.email}`,
		`lines  {lookup.cart.items} variant.sku quantity`,
		`ref    {lookup.cart.id}`,
		`other_items pass`,
	}
}

// as returns a request of a session to the shop.
func as(session, path, body string) *http.Request {
	r := sitetest.WithBody(sitetest.NewOrder(), body)
	r.Header.Del("X-User-Id")
	if session != "" {
		r.Header.Set("Cookie", "session="+session)
	}
	r.URL.Path = path
	return r
}

const pay = `{"method":"card"}`

// The request to pay does not say what it buys: the gate asks the shop for the cart, in the
// buyer's name, and reserves what is in it.
func TestLookupReserves(t *testing.T) {
	shop := newCartShop(t)
	s := openCarts(t, shop)
	s.Send(as("ann", "/shop/add", `{"sku":"few","quantity":2}`)).Is(t, 200, "")
	s.Send(as("ann", "/shop/add", `{"sku":"ordinary","quantity":7}`)).Is(t, 200, "")
	a := s.Send(as("ann", "/shop/pay", pay))
	a.Is(t, 201, "")
	if len(a.Header["Set-Cookie"]) != 0 {
		t.Errorf("the lookup's cookies went to the client: %v", a.Header)
	}
	if got := s.StockOf("few"); got != "3 1 0 0 2" {
		t.Errorf("stock %s", got)
	}
	// a cart with nothing of a sale passes
	s.Send(as("bob", "/shop/add", `{"sku":"ordinary","quantity":1}`)).Is(t, 200, "")
	s.Send(as("bob", "/shop/pay", pay)).Is(t, 201, "")
	// more than is left, nothing at all, and no session
	s.Send(as("cid", "/shop/add", `{"sku":"few","quantity":2}`)).Is(t, 200, "")
	s.Send(as("cid", "/shop/pay", pay)).Is(t, 409, "sold_out")
	s.Send(as("eve", "/shop/add", `{"sku":"few","quantity":1}`)).Is(t, 200, "")
	s.Send(as("eve", "/shop/pay", pay)).Is(t, 201, "")
	s.Send(as("cid", "/shop/pay", pay)).Is(t, 409, "sold_out")
	s.Send(as("dan", "/shop/pay", pay)).Is(t, 409, "no_cart")
	before, _, _ := shop.counts()
	s.Send(as("", "/shop/pay", pay)).Is(t, 401, "no_buyer")
	if after, _, orders := shop.counts(); after != before || orders != 3 {
		t.Errorf("%d lookups after %d, %d orders", after, before, orders)
	}
	// a remembered cart costs no lookup, as soon as the edge knows that nothing is left, until
	// the session changes it
	s.Eventually("a sold-out cart is not looked up again", func() (string, bool) {
		before, _, _ := shop.counts()
		s.Send(as("cid", "/shop/pay", pay)).Is(t, 409, "sold_out")
		after, _, _ := shop.counts()
		return fmt.Sprint(after), after == before
	})
	shop.set(func() { delete(shop.carts, "cid") })
	s.Send(as("cid", "/shop/add", `{"sku":"plain","quantity":1}`)).Is(t, 200, "")
	s.Send(as("cid", "/shop/pay", pay)).Is(t, 201, "")
	if got := s.StockOf("few") + " " + s.StockOf("plain"); got != "3 0 0 0 3 100 99 0 0 1" {
		t.Errorf("stock %s", got)
	}
}

// openCarts opens a site whose gate takes what has a method for an attempt to pay.
func openCarts(t *testing.T, shop *cartShop, more ...string) *sitetest.Site {
	return sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate /shop* pay {
		json_body method card
		`+strings.Join(append(cartGate(shop), more...), "\n\t\t")+`
	}
	reverse_proxy `+shop.Listener.Addr().String())
}

// Whatever the shop answers to a lookup, nothing is sold by guess.
func TestLookupAnswers(t *testing.T) {
	shop := newCartShop(t)
	s := openCarts(t, shop)
	for name, c := range map[string]struct {
		status int
		body   string
		want   int
		reason string
	}{
		"error":           {500, "", 503, "unavailable"},
		"redirect":        {302, "", 503, "unavailable"},
		"not JSON":        {200, "<html>", 503, "unavailable"},
		"no object":       {200, "[]", 503, "unavailable"},
		"two":             {200, "{}{}", 503, "unavailable"},
		"a name twice":    {200, `{"cart":{"items":[]},"cart":{"items":[]}}`, 503, "unavailable"},
		"too long":        {200, `{"cart":"` + strings.Repeat("x", 64<<10) + `"}`, 503, "unavailable"},
		"no quantity":     {200, `{"cart":{"id":"1","email":"a@b","items":[{"variant":{"sku":"few"}}]}}`, 503, "unavailable"},
		"a half":          {200, `{"cart":{"id":"1","email":"a@b","items":[{"variant":{"sku":"few"},"quantity":0.5}]}}`, 503, "unavailable"},
		"negative":        {200, `{"cart":{"id":"1","email":"a@b","items":[{"variant":{"sku":"few"},"quantity":-1}]}}`, 503, "unavailable"},
		"no buyer":        {200, `{"cart":{"id":"1","items":[{"variant":{"sku":"few"},"quantity":1}]}}`, 401, "no_buyer"},
		"not signed in":   {401, "", 401, "no_buyer"},
		"no cart":         {404, "", 409, "no_cart"},
		"null":            {200, `{"cart":null}`, 409, "no_cart"},
		"too many":        {200, `{"cart":{"id":"1","email":"a@b","items":[{"variant":{"sku":"few"},"quantity":20000}]}}`, 400, "quantity"},
		"nameless, alone": {200, `{"cart":{"id":"1","email":"a@b","items":[{"variant":null,"quantity":1}]}}`, 201, ""},
		"a null name":     {200, `{"cart":{"id":"1","email":"a@b","items":[{"variant":{"sku":null},"quantity":1}]}}`, 201, ""},
		"one has a name":  {200, `{"cart":{"id":"1","email":"a@b","items":[{"quantity":1},{"variant":{"sku":"ordinary"},"quantity":1}]}}`, 201, ""},
		"no line has it":  {200, `{"cart":{"id":"1","email":"a@b","items":[{"variant":{"SKUs":"few"},"quantity":1},{"quantity":1}]}}`, 503, "unavailable"},
	} {
		shop.set(func() {
			shop.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}
		})
		t.Run(name, func(t *testing.T) { s.Send(as("ann", "/shop/pay", pay)).Is(t, c.want, c.reason) })
		s.Send(as("ann", "/shop/add", `{"sku":"none","quantity":0}`)) // forget the cart
	}
	if got := s.StockOf("few"); got != "3 3 0 0 0" {
		t.Errorf("stock %s", got)
	}
}

// An answer that is no cart is logged once and counted as what the buyer hears, who does not
// hear where the gate reads.
func TestLookupUnread(t *testing.T) {
	const (
		line   = `{"variant":{"sku":"few"},"quantity":1}`
		whole  = `{"cart":{"id":"1","email":"a@b","items":[` + line + `]}}`
		unread = "the lookup gets no answer that says what is in a cart: attempts are refused as unavailable until it does"
		lacks  = "the lookup's answer lacks the array of `lines`: attempts are refused as no_cart; if the shop does not leave it out where a cart is empty, `lines` reads the wrong place"
	)
	for name, c := range map[string]struct{ body, reason, log, why string }{
		"not JSON":    {"<html>", "unavailable", unread, "the answer: it is not a JSON object"},
		"no array":    {`{"cart":{"items":{"1":` + line + `}}}`, "unavailable", unread, "lookup.cart.items: it is not an array"},
		"no quantity": {`{"cart":{"items":[{"variant":{"sku":"few"}}]}}`, "unavailable", unread, "lookup.cart.items.quantity: it is not a whole number from 1 to 99999, in digits alone"},
		"no SKU":      {`{"cart":{"items":[{"variant":{"id":"few"},"quantity":1}]}}`, "unavailable", unread, "lookup.cart.items.variant.sku: no line has it"},
		"no lines":    {`{"carts":{}}`, "no_cart", lacks, "lookup.cart.items: it is not there"},
		"null":        {`{"cart":null}`, "no_cart", lacks, ""},
		"empty":       {`{"cart":{"items":[]}}`, "no_cart", lacks, ""},
	} {
		t.Run(name, func(t *testing.T) {
			shop := newCartShop(t)
			body := c.body
			shop.answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
			s := openCarts(t, shop)
			counted := func(answer string) string { return s.Scrape()[`stockgate_lookups_total{answer="`+answer+`"}`] }
			before := counted("answered")
			for _, session := range []string{"ann", "bob"} {
				a := s.Send(as(session, "/shop/pay", pay))
				if a.Header.Get("Stockgate-Refusal") != c.reason || strings.Contains(a.Body, "lookup") || strings.Contains(a.Body, "cart.items") {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			}
			logged := s.Logged(c.log)
			if c.why == "" && len(logged) != 0 || c.why != "" && (len(logged) != 1 || logged[0]["answer"] != c.why) {
				t.Errorf("logged %v", logged)
			}
			if now := counted("answered"); now != before {
				t.Errorf("%s lookups are answered, after %s", now, before)
			}
			if r := s.TryAt("POST /shop/pay HTTP/1.1\nHost: a\nContent-Type: application/json\nCookie: session=eve\n\n" + pay); c.reason == "unavailable" && !strings.Contains(r.Out, c.why) {
				t.Errorf("try says %s%s", r.Out, r.Errors)
			}
			shop.set(func() { body = whole })
			s.Send(as("cid", "/shop/pay", pay)).Is(t, 201, "")
			if again := s.Logged("the lookup gets answers again"); (len(again) == 1) != (c.reason == "unavailable") {
				t.Errorf("logged %v", again)
			}
		})
	}
}

// `caddy stockgate try` asks the shop for the cart too, where requests of a session wait.
func TestLookupTry(t *testing.T) {
	shop := newCartShop(t)
	s := openCarts(t, shop)
	shop.put("ann", "few", 2)
	r := s.TryAt("POST /shop/pay HTTP/1.1\nHost: a\nContent-Type: application/json\nCookie: session=ann\n\n" + pay)
	if r.Status != 0 || !strings.Contains(r.Out, "few") || !strings.Contains(r.Out, "ann@example.com") {
		t.Errorf("%d: %s%s", r.Status, r.Out, r.Errors)
	}
}

// An attempt that no sale concerns is said to pass without a reservation.
func TestTryOtherItems(t *testing.T) {
	shop := newCartShop(t)
	s := openCarts(t, shop)
	shop.put("ann", "ordinary", 2)
	r := s.TryAt("POST /shop/pay HTTP/1.1\nHost: a\nContent-Type: application/json\nCookie: session=ann\n\n" + pay)
	if r.Status != 0 || !strings.Contains(r.Out, "passes without a reservation: no sale lists its items") || strings.Contains(r.Out, "passes the filters") {
		t.Errorf("%d: %s%s", r.Status, r.Out, r.Errors)
	}
}

// The outcome is what the shop says when it is asked, whatever it answered the client.
func TestAsk(t *testing.T) {
	shop := newCartShop(t)
	s := openCarts(t, shop,
		`outcome ask GET `+shop.URL+`/orders/{ref} {
			lines {ask.cart.items} variant.sku quantity
			payments sync
		}`,
		"@sold {\n json cart.state paid\n }", "@not {\n json cart.state open\n }", "confirm @sold", "release @not", "hold_for 10m")
	s.Send(as("ann", "/shop/add", `{"sku":"few","quantity":2}`)).Is(t, 200, "")
	s.Send(as("ann", "/shop/pay", pay)).Is(t, 201, "")
	if got := s.StockOf("few"); got != "3 1 0 0 2" {
		t.Errorf("stock %s", got)
	}
	// refused with 200, as servers of GraphQL do
	shop.set(func() { shop.status = 400 })
	s.Send(as("bob", "/shop/add", `{"sku":"few","quantity":1}`)).Is(t, 200, "")
	s.Send(as("bob", "/shop/pay", pay)).Is(t, 400, "")
	if got := s.StockOf("few"); got != "3 1 0 0 2" {
		t.Errorf("stock %s", got)
	}
	// an order is taken, and the answer looks like a refusal
	shop.set(func() { shop.status = 0 })
	s.Send(as("bob", "/shop/pay", pay)).Is(t, 201, "")
	if got := s.StockOf("few"); got != "3 0 0 0 3" {
		t.Errorf("stock %s", got)
	}
	if _, asks, orders := shop.counts(); asks != 3 || orders != 2 {
		t.Errorf("%d asks, %d orders", asks, orders)
	}
}

// A cart that was changed behind the gate's back: what was sold counts, not what was reserved.
func TestAskCompares(t *testing.T) {
	shop := newCartShop(t)
	s := openCarts(t, shop,
		`outcome ask GET `+shop.URL+`/orders/{ref} {
			lines {ask.cart.items} variant.sku quantity
		}`,
		"@sold {\n json cart.state paid\n }", "@not {\n json cart.state open\n }", "confirm @sold", "release @not", "hold_for 10m")
	shop.put("ann", "few", 3)
	shop.paying = func(*http.Request) { shop.put("ann", "few", -1) }
	s.Send(as("ann", "/shop/pay", pay)).Is(t, 201, "")
	s.Eventually("a unit that was not sold is on sale again", func() (string, bool) {
		got := s.StockOf("few")
		return got, got == "3 1 0 0 2"
	})
	shop.put("bob", "plain", 1)
	shop.paying = func(*http.Request) { shop.put("bob", "plain", 4); shop.put("bob", "few", 1) }
	s.Send(as("bob", "/shop/pay", pay)).Is(t, 201, "")
	s.Eventually("units that were sold beyond the hold are reserved", func() (string, bool) {
		got := s.StockOf("plain") + " " + s.StockOf("few")
		return got, got == "100 95 0 0 5 3 0 0 0 3"
	})
	// beyond the stock: the units are unbacked, and the operator is told
	shop.put("cid", "plain", 1)
	shop.paying = func(*http.Request) { shop.put("cid", "few", 1) }
	s.Send(as("cid", "/shop/pay", pay)).Is(t, 201, "")
	if logged := s.Logged("the shop sold more than was reserved, and the units are sold to others: its cart was changed after it was looked up; see `caddy stockgate holds --state unbacked`"); len(logged) != 1 {
		t.Errorf("logged %v", logged)
	}
	if got := s.StockOf("plain") + " " + s.StockOf("few"); got != "100 94 0 0 6 3 0 0 0 3" {
		t.Errorf("stock %s", got)
	}
	if list := sitetest.Do[map[string]any](s, "GET", "/stockgate/sales/double11/holds?state=unbacked", ""); !strings.Contains(fmt.Sprint(list), "few") {
		t.Errorf("unbacked are %v", list)
	}
}

// A question names the order by what the shop said about the cart, and what no gate can fill in is
// an error.
func TestAskByLookup(t *testing.T) {
	shop := newCartShop(t)
	s := openCarts(t, shop, `outcome ask GET `+shop.URL+`/orders/{lookup.cart.id}`,
		"@sold {\n json cart.state paid\n }", "@not {\n json cart.state open\n }", "confirm @sold", "release @not")
	shop.put("ann", "few", 1)
	s.Send(as("ann", "/shop/pay", pay)).Is(t, 201, "")
	if got := s.StockOf("few"); got != "3 2 0 0 1" {
		t.Errorf("stock %s", got)
	}
	for question, says := range map[string]string{
		`outcome ask GET ` + shop.URL + `/orders/{jwt.sub}`: "outcome ask: {jwt.sub} needs jwt",
		`outcome ask GET ` + shop.URL + `/orders/{cart.id}`: "there are {ref}, {lookup.…}, {jwt.…}",
	} {
		err := s.LoadCaddyfile("stockgate_guard\n\tstockgate /shop* pay {\n\t\tjson_body method card\n\t\t" +
			strings.Join(append(cartGate(shop), question, "@sold {\n json cart.state paid\n }", "@not {\n json cart.state open\n }", "confirm @sold", "release @not"), "\n\t\t") +
			"\n\t}\n\treverse_proxy " + shop.Listener.Addr().String())
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, it should say %q", question, err, says)
		}
	}
}

// Before a sale begins the shop is not asked for carts. When it is over it is, because the buyer
// may have bought.
func TestLookupBesideTheSale(t *testing.T) {
	shop := newCartShop(t)
	addr := shop.Listener.Addr().String()
	s := sitetest.OpenCaddyfile(t, `stockgate_guard
	stockgate /shop* pay {
		json_body method card
		lookup GET `+shop.URL+`/cart
		buyer  {lookup.cart.email}
		lines  {lookup.cart.items} variant.sku quantity
		ref    {lookup.cart.id}
	}
	reverse_proxy `+addr)
	shop.put("ann", "few", 1)
	sale := func(from, to string) {
		file := strings.NewReplacer("2020-11-11T", from, "2090-11-12T", to).Replace(sitetest.SaleFile)
		sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", file)
		s.Refresh()
	}
	sale("2080-11-11T", "2090-11-12T")
	s.Eventually("an edge that knows that the sale has not begun", func() (string, bool) {
		before, _, _ := shop.counts()
		reason := s.Send(as("ann", "/shop/pay", pay)).Header.Get("Stockgate-Refusal")
		after, _, _ := shop.counts()
		return reason, reason == "not_started" && after == before
	})
	sale("2020-11-11T", "2021-11-12T")
	s.Eventually("an edge that knows that the sale is over, and asks the shop", func() (string, bool) {
		before, _, _ := shop.counts()
		reason := s.Send(as("ann", "/shop/pay", pay)).Header.Get("Stockgate-Refusal")
		after, _, _ := shop.counts()
		return reason, reason == "ended" && after > before
	})
}
