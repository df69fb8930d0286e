package inquiry

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/internal/shopurl"
	"github.com/stockgate/stockgate/filters/outcome"
)

func compile(t testing.TB, s Spec) *Inquiry {
	t.Helper()
	i, err := s.Compile("the lookup")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// shop keeps what it was asked, and answers with a redirect that must not be followed.
func shop(t *testing.T) (*httptest.Server, func() *http.Request) {
	asked := make(chan *http.Request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		asked <- r
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusFound)
	}))
	t.Cleanup(server.Close)
	return server, func() *http.Request {
		t.Helper()
		select {
		case r := <-asked:
			return r
		default:
			t.Fatal("the shop was not asked")
			return nil
		}
	}
}

// The shop sees the buyer, and nothing that is about the body, the cache or the repetition of
// the buyer's request, nor what the buyer says about proxies.
func TestInTheBuyersName(t *testing.T) {
	server, asked := shop(t)
	i := compile(t, Spec{Method: "POST", URL: server.URL + "/api?fields=items&cart_id=7", Body: `{"id":"{ref}","query":"{a{b}}"}`})
	r := httptest.NewRequest("POST", "http://shop.example/pay?lang=de&fields=none&Fields[]=x&fields.a=1&cart.id=8&Cart[id=8&+cart_id=8&cart%20id=8&cart_id%00x=8&=y&a;b=1&%zz=1", strings.NewReader("x"))
	r.Header = http.Header{
		"Authorization": {"Bearer x"}, "Cookie": {"a=1; b=2"}, "Accept-Language": {"de"}, "X-Channel": {"web"},
		"Content-Type": {"text/plain"}, "Content-Encoding": {"br"}, "Content-Length": {"1"}, "If-None-Match": {"x"}, "Range": {"bytes=0-1"}, "Expect": {"100-continue"},
		"Idempotency-Key": {"k"}, "Stockgate-Token": {"t"}, "X-Forwarded-For": {"6.6.6.6"}, "Forwarded": {"for=6.6.6.6"}, "X-Http-Method-Override": {"DELETE"},
		"Connection": {"close, X-Hop"}, "X-Hop": {"1"}, "Te": {"trailers"}, "Upgrade": {"h2c"}, "Accept": {"text/html"}, "Accept-Encoding": {"gzip"},
	}
	answer, err := i.Ask(t.Context(), BuyerOf(r), is(`o"1\`))
	if err != nil || answer.Status != http.StatusFound {
		t.Fatal(answer, err)
	}
	got := asked()
	body, _ := io.ReadAll(got.Body)
	if string(body) != `{"id":"o\"1\\","query":"{a{b}}"}` || got.Method != "POST" || got.Host != "shop.example" || got.URL.RequestURI() != "/api?fields=items&cart_id=7&lang=de" {
		t.Errorf("the shop was asked %s %s %s %s", got.Method, got.Host, got.URL.RequestURI(), body)
	}
	want := map[string]string{
		"Authorization": "Bearer x", "Cookie": "a=1; b=2", "Accept-Language": "de", "X-Channel": "web", "Content-Type": "application/json", "Accept": "application/json",
		"Accept-Encoding": "identity", "X-Forwarded-Host": "shop.example", "X-Forwarded-Proto": "http", "Content-Length": "32",
	}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, got.Header[name], value)
		}
	}
	for name := range got.Header {
		if want[name] == "" && name != "User-Agent" {
			t.Errorf("the shop got %s: %q", name, got.Header[name])
		}
	}
	if r.Header.Get("Content-Type") != "text/plain" {
		t.Error("the buyer's request was changed")
	}
}

// A ref leads nowhere else, and a question without one is not sent.
func TestRefs(t *testing.T) {
	server, asked := shop(t)
	inPath := compile(t, Spec{Method: "GET", URL: server.URL + "/carts/{ref}/state"})
	r := httptest.NewRequest("GET", "http://shop.example/", nil)
	for _, ref := range []string{"", "..", "a/b", "a?b", "%2e", "a b"} {
		if _, err := inPath.Ask(t.Context(), BuyerOf(r), is(ref)); !errors.Is(err, ErrNoValue) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if answer, err := inPath.Ask(t.Context(), BuyerOf(r), is("c-1")); err != nil || asked().URL.Path != "/carts/c-1/state" || answer.Ref != "c-1" {
		t.Error(answer, err)
	}
	inBody := compile(t, Spec{Method: "POST", URL: server.URL, Body: `{"id":"{ref}"}`})
	if _, err := inBody.Ask(t.Context(), BuyerOf(r), is("")); !errors.Is(err, ErrNoValue) {
		t.Error(err)
	}
	if !inPath.ByRef() || !inBody.ByRef() || compile(t, Spec{Method: "GET", URL: server.URL}).ByRef() {
		t.Error("it is not known which question needs a ref")
	}
}

// A server may close an idle connection just when a question arrives on it.
func TestClosedWhileIdle(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	closed := make(chan struct{})
	serve := func(answers int) {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for in := bufio.NewReader(c); ; answers-- {
			r, err := http.ReadRequest(in)
			if err != nil || answers == 0 {
				return
			}
			body, _ := io.ReadAll(r.Body)
			if r.Header["Idempotency-Key"] != nil {
				t.Errorf("the question has Idempotency-Key %q", r.Header["Idempotency-Key"])
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	}
	go func() {
		serve(1)
		close(closed)
		serve(1)
	}()
	i := compile(t, Spec{Method: "POST", URL: "http://" + l.Addr().String(), Body: `{"query":"{a}"}`})
	buyer := BuyerOf(httptest.NewRequest("POST", "http://shop.example/", nil))
	for n := range 2 {
		answer, err := i.Ask(t.Context(), buyer, is(""))
		if err != nil || string(answer.Body) != `{"query":"{a}"}` {
			t.Fatalf("question %d: %v %v", n+1, answer, err)
		}
	}
	<-closed // the second question found the first connection
}

// At most at_once questions are under way, at most queue wait, each for at most wait.
func TestBounds(t *testing.T) {
	arrived, let := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { arrived <- struct{}{}; <-let }))
	t.Cleanup(server.Close)
	i := compile(t, Spec{Method: "GET", URL: server.URL, AtOnce: 2, Queue: 1, Wait: caddy.Duration(time.Minute), Timeout: caddy.Duration(time.Minute)})
	buyer := BuyerOf(httptest.NewRequest("GET", "http://shop.example/", nil))
	done := make(chan error, 4)
	ask := func(ctx context.Context) {
		_, err := i.Ask(ctx, buyer, is(""))
		done <- err
	}
	go ask(t.Context())
	go ask(t.Context())
	<-arrived
	<-arrived
	ctx, leave := context.WithCancel(t.Context())
	go ask(ctx)
	for i.waiting.Load() != 1 {
		runtime.Gosched()
	}
	if _, err := i.Ask(t.Context(), buyer, is("")); !errors.Is(err, ErrBusy) {
		t.Errorf("the fourth: %v", err)
	}
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a client that left: %v", err)
	}
	go ask(t.Context())
	close(let)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	impatient := compile(t, Spec{Method: "GET", URL: server.URL, AtOnce: 1, Wait: caddy.Duration(time.Millisecond)})
	impatient.slots <- struct{}{}
	if _, err := impatient.Ask(t.Context(), buyer, is("")); !errors.Is(err, ErrBusy) {
		t.Errorf("after wait: %v", err)
	}
}

func TestCompileErrors(t *testing.T) {
	t.Setenv("STOCKGATE_TEST_KEY", "secret")
	const at = "http://shop/"
	for says, s := range map[string]Spec{
		"there are GET and POST":         {Method: "PUT", URL: at},
		"a GET has no body":              {Method: "GET", URL: at, Body: "{}"},
		"whole http or https URL":        {Method: "GET", URL: "shop/cart"},
		"has a brace that is no":         {Method: "GET", URL: at + "{id}"},
		"there are {ref}, {jwt.…}":       {Method: "GET", URL: at + "{lookup.id}"},
		"{ref}, {jwt.…} and those":       {Method: "GET", URL: at + "{jwt.}"},
		"is no JSON":                     {Method: "POST", URL: at, Body: "{"},
		"outside of a string":            {Method: "POST", URL: at, Body: `{"a":[],"b":"{ref}","c":1{ref}}`},
		"is no JSON object":              {Method: "POST", URL: at, Body: `["{ref}"]`},
		"declare a variable":             {Method: "POST", URL: at, Body: `{"query":"{order(code: \"{ref}\"){id}}"}`},
		"one of Caddy's own":             {Method: "POST", URL: at, Body: `{"query":"{http.request.uri.path}"}`},
		"wait and timeout are at most":   {Method: "GET", URL: at, Timeout: caddy.Duration(time.Hour)},
		"at_once and queue must be posi": {Method: "GET", URL: at, AtOnce: -1},
	} {
		if _, err := s.Compile("the lookup", "jwt."); err == nil || !(strings.Contains(err.Error(), says) || says == "outside of a string" && strings.Contains(err.Error(), "is no JSON")) {
			t.Errorf("%+v: %v, it should say %q", s, err, says)
		}
	}
	i := compile(t, Spec{Method: "POST", URL: at, Body: `{"key":"{env.STOCKGATE_TEST_KEY}","query":"query($c:String!){order(code:$c){lines{sku}}}","variables":{"c":"{ref}"}}`})
	body, _ := i.body.Fill(func(string) string { return "O-1" })
	if string(body) != `{"key":"secret","query":"query($c:String!){order(code:$c){lines{sku}}}","variables":{"c":"O-1"}}` {
		t.Errorf("the body is %s", body)
	}
}

// Whatever a ref is, the body says the same but for that one string.
func FuzzBody(f *testing.F) {
	i := compile(f, Spec{Method: "POST", URL: "http://shop/", Body: `{"query":"{a{b}}","variables":{"c":"x{ref}y"}}`})
	for _, ref := range []string{"a", `"`, `\`, `"},"query":"mutation{x}`, "\x00", "\xff", "{ref}", "<"} {
		f.Add(ref)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		body, ok := i.body.Fill(func(string) string { return ref })
		if ok != (ref != "") {
			t.Fatalf("%q: %v", ref, ok)
		}
		if !ok {
			return
		}
		rest, found := strings.CutPrefix(string(body), `{"query":"{a{b}}","variables":{"c":"x`)
		inside, closed := strings.CutSuffix(rest, `y"}}`)
		for at := 0; at < len(inside); at++ {
			if inside[at] == '\\' {
				at++
			} else if inside[at] == '"' {
				t.Fatalf("%q ends the string: %s", ref, body)
			}
		}
		if !found || !closed {
			t.Fatalf("%q: %s", ref, body)
		}
	})
}

// What the shop has sold is read whole, or not at all.
func TestSold(t *testing.T) {
	l := SoldLines{Array: "data.order.lines", SKU: "variant.sku", Quantity: "quantity"}
	for body, want := range map[string]int64{
		`{"data":{"order":{"lines":[{"variant":{"sku":"a"},"quantity":2},{"variant":{"sku":"a"},"quantity":1},{"variant":null,"quantity":5}]}}}`: 3,
		`{"data":{"order":{"lines":[]}}}`:                                                                          0,
		`{"data":{"order":null}}`:                                                                                  -1,
		`{"data":{"order":{"lines":null}}}`:                                                                        -1,
		`{"data":{"order":{"lines":[{"variant":{"sku":"a"},"quantity":"2"}]}}}`:                                    -1,
		`{"data":{"order":{"lines":[{"variant":{"sku":"a"},"quantity":2.5}]}}}`:                                    -1,
		`{"data":{"order":{"lines":[{"variant":{"sku":"a"},"quantity":-1}]}}}`:                                     -1,
		`{"data":{"order":{"lines":[{"variant":{"sku":true},"quantity":1}]}}}`:                                     -1,
		`{"data":{"order":{"lines":[{"variant":{"sku":1.5},"quantity":1}]}}}`:                                      -1,
		`{"data":{"order":{"lines":[{"product":{"sku":"a"},"quantity":2}]}}}`:                                      -1,
		`{"data":{"order":{"lines":[{"variant":{"sku":123},"quantity":2},{"variant":{"sku":"a"},"quantity":1}]}}}`: 1,
		`not JSON`: -1,
	} {
		sold, ok := l.Sold(&outcome.ShopAnswer{Body: []byte(body), Whole: true})
		if ok != (want >= 0) || ok && sold["a"] != want {
			t.Errorf("%s: %v %v, want %d", body, sold, ok, want)
		}
	}
	number := &outcome.ShopAnswer{Body: []byte(`{"data":{"order":{"lines":[{"variant":{"sku":123},"quantity":2}]}}}`), Whole: true}
	if sold, ok := l.Sold(number); !ok || sold["123"] != 2 {
		t.Errorf("of a numeric SKU it has sold %v %v", sold, ok)
	}
	if _, ok := l.Sold(&outcome.ShopAnswer{Body: []byte(`{"data":{"order":{"lines":[]}}}`)}); ok {
		t.Error("half an answer is believed")
	}
}

// Where the shop answers with several orders, it does not say what this one has.
func TestSoldOfOneOrder(t *testing.T) {
	l := SoldLines{Array: "orders.0.lines", SKU: "variants.0.sku", Quantity: "quantity"}
	for body, want := range map[string]bool{
		`{"orders":[{"lines":[{"variants":[{"sku":"a"}],"quantity":2}]}]}`:                                                     true,
		`{"orders":[{"lines":[{"variants":[{"sku":"a"}],"quantity":2}]},{"lines":[{"variants":[{"sku":"b"}],"quantity":2}]}]}`: false,
		`{"orders":[{"lines":[{"variants":[{"sku":"a"},{"sku":"b"}],"quantity":2}]}]}`:                                         false,
		`{"orders":[]}`: false,
	} {
		if sold, ok := l.Sold(&outcome.ShopAnswer{Body: []byte(body), Whole: true}); ok != want || ok && sold["a"] != 2 {
			t.Errorf("%s: %v %v", body, sold, ok)
		}
	}
}

// A question names the order by what is known of it, and by none of several.
func TestTold(t *testing.T) {
	spec := Spec{Method: "POST", URL: "http://shop/{lookup.carts.0.id}", Body: `{"sub":"{jwt.sub}","n":"{lookup.n}","ref":"{ref}","none":"{jwt.none}"}`}
	i, err := spec.Compile("outcome ask", "lookup.", "jwt.")
	if err != nil {
		t.Fatal(err)
	}
	for cart, want := range map[string]string{
		`{"carts":[{"id":"c-1"}],"n":1.50}`:  "map[jwt.sub:u1 lookup.carts.0.id:c-1 lookup.n:1.50]",
		`{"carts":[{"id":"c-1"},{}],"n":[]}`: "map[jwt.sub:u1]",
		``:                                   "map[jwt.sub:u1]",
	} {
		if got := fmt.Sprint(i.Told(map[string][]byte{"jwt": []byte(`{"sub":"u1"}`), "lookup": []byte(cart)})); got != want {
			t.Errorf("%s: %s, want %s", cart, got, want)
		}
	}
}

// is gives every placeholder a value.
func is(value string) shopurl.Lookup { return func(string) string { return value } }
