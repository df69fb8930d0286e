package shop_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/token"
)

func TestWhatAnOrderLooksLike(t *testing.T) {
	const js, form = "application/json", "application/x-www-form-urlencoded"
	one, two := []sale.Line{line("a", 1, "")}, []sale.Line{line("a", 2, "")}
	for _, c := range []struct {
		name, path, kind, body string
		want                   []sale.Line // nil: 400
	}{
		{"sku", "", js, `{"sku":"a"}`, one},
		{"charset", "", js + "; charset=utf-8", `{"sku":"a"}`, one},
		{"quantity", "", js, `{"sku":"a","quantity":2}`, two},
		{"quantity as text", "", js, `{"sku":"a","quantity":"2"}`, two},
		{"number as sku", "", js, `{"sku":20002001}`, []sale.Line{line("20002001", 1, "")}},
		{"region", "", js, `{"sku":"a","region":"beijing"}`, []sale.Line{line("a", 1, "beijing")}},
		{"items", "", js, `{"items":[{"sku":"a","count":2},{"sku":"b"}]}`, []sale.Line{line("a", 2, ""), line("b", 1, "")}},
		{"items with region", "", js, `{"items":[{"sku":"a"}],"region":"beijing"}`, []sale.Line{line("a", 1, "beijing")}},
		{"other members", "", js, `{"sku":"a","note":"for grandma"}`, one},
		{"form", "", form, "sku=a&quantity=2", two},
		{"form with region", "", form, "sku=a&region=beijing", []sale.Line{line("a", 1, "beijing")}},
		{"query", "?sku=a&quantity=2", "", "", two},

		{"nothing", "", "", "", nil},
		{"empty object", "", js, `{}`, nil},
		{"no items", "", js, `{"items":[]}`, nil},
		{"sku and items", "", js, `{"sku":"a","items":[{"sku":"a"}]}`, nil},
		{"too many items", "", js, `{"items":[` + strings.Repeat(`{"sku":"a"},`, 50) + `{"sku":"a"}]}`, nil},
		{"quantity 0", "", js, `{"sku":"a","quantity":0}`, nil},
		{"quantity negative", "", js, `{"sku":"a","quantity":-1}`, nil},
		{"quantity fraction", "", js, `{"sku":"a","quantity":1.5}`, nil},
		{"quantity huge", "", js, `{"sku":"a","quantity":1e309}`, nil},
		{"quantity an object", "", js, `{"sku":"a","quantity":{}}`, nil},
		{"sku a fraction", "", js, `{"sku":1.5}`, nil},
		{"sku an array", "", js, `{"sku":["a"]}`, nil},
		{"sku long", "", js, `{"sku":"` + strings.Repeat("a", 129) + `"}`, nil},
		{"broken JSON", "", js, `{"sku":"a"`, nil},
		{"broken form", "", form, "sku=%zz", nil},
		{"broken query", "?sku=%zz", "", "", nil},
		{"form with quantity 0", "", form, "sku=a&quantity=0", nil},
		{"no media type", "?sku=a", "", `{"sku":"a"}`, nil},
		{"other media type", "", "text/plain", `{"sku":"a"}`, nil},
		{"too large", "", js, `{"sku":"a","note":"` + strings.Repeat("x", 1<<20) + `"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newUnchanged(t)
			got := b.mustSend(t, b.post(t, "/api/order"+c.path, c.kind, c.body, "", "X-User-Id", "u1"))
			orders := b.orders(t)
			if c.want == nil {
				wantStatus(t, got, http.StatusBadRequest, 400)
				if len(orders) != 0 {
					t.Errorf("written: %+v", orders)
				}
				return
			}
			wantStatus(t, got, http.StatusCreated, 0)
			if len(orders) != 1 || !reflect.DeepEqual(orders[0].Lines, c.want) {
				t.Errorf("written: %+v, want %+v", orders, c.want)
			}
		})
	}
}

func TestAnOrderWithItsToken(t *testing.T) {
	b := newBench(t, shop.Options{})
	got := b.mustSend(t, b.post(t, "/api/order", "application/json", `{"items":[{"sku":"b"},{"sku":"a","count":2}],"region":"beijing"}`,
		b.sign(t, "r1", line("a", 2, "beijing"), line("b", 1, "")), "X-User-Id", "u1"))
	wantStatus(t, got, http.StatusCreated, 0)
	if got.Reservation != "r1" || got.OrderNo == "" {
		t.Errorf("answer %+v", got)
	}
	orders := b.orders(t)
	if len(orders) != 1 || orders[0].OrderNo != got.OrderNo || orders[0].Buyer != "u1" || orders[0].Reservation != "r1" {
		t.Errorf("written: %+v", orders)
	}
}

func TestTheTokenNamesTheBuyer(t *testing.T) {
	b := newBench(t, shop.Options{})
	wantStatus(t, b.mustSend(t, b.request(t, b.sign(t, "r1", line("a", 1, "")))), http.StatusCreated, 0)
	if orders := b.orders(t); len(orders) != 1 || orders[0].Buyer != "u1" {
		t.Errorf("written: %+v", orders)
	}
}

// A token that cannot be verified at present may be genuine: the shop says so, and writes nothing.
func TestKeysThatAreAway(t *testing.T) {
	edge := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(edge.Close)
	keys, err := token.NewRemoteKeys(token.RemoteOptions{URL: edge.URL})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := token.NewVerifier(token.Options{Remote: keys, Audience: audience})
	if err != nil {
		t.Fatal(err)
	}
	b := new(bench)
	b.open(t, shop.Options{Verifier: verifier})
	wantStatus(t, b.mustSend(t, b.request(t, b.sign(t, "r1", line("a", 1, "")))), 503, 503)
	if orders := b.orders(t); len(orders) != 0 {
		t.Errorf("written: %+v", orders)
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		lines   []sale.Line
		spoil   func(b *bench, r *http.Request)
		status  int
		trusted bool
	}{
		{"missing", nil, func(_ *bench, r *http.Request) { r.Header.Del("Stockgate-Token") }, 403, false},
		{"forged", nil, func(_ *bench, r *http.Request) { r.Header.Set("Stockgate-Token", "a.b.c") }, 403, false},
		{"repeated", nil, func(_ *bench, r *http.Request) { r.Header.Add("Stockgate-Token", "a.b.c") }, 403, false},
		{"another buyer", nil, func(_ *bench, r *http.Request) { r.Header.Set("X-User-Id", "u2") }, 403, false},
		{"two buyers", nil, func(_ *bench, r *http.Request) { r.Header.Add("X-User-Id", "u1") }, 400, false},
		{"expired", nil, func(b *bench, _ *http.Request) { b.clock.Store(expires) }, 403, true},
		{"another item", []sale.Line{line("b", 1, "")}, nil, 403, true},
		{"less", []sale.Line{line("a", 2, "")}, nil, 403, true},
		{"another region", []sale.Line{line("a", 1, "beijing")}, nil, 403, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, shop.Options{})
			lines := c.lines
			if lines == nil {
				lines = []sale.Line{line("a", 1, "")}
			}
			r := b.request(t, b.sign(t, "r1", lines...), "X-User-Id", "u1")
			if c.spoil != nil {
				c.spoil(b, r)
			}
			got := b.mustSend(t, r)
			wantStatus(t, got, c.status, c.status)
			if got.Msg == "" {
				t.Error("no reason given")
			}
			if orders := b.orders(t); len(orders) != 0 {
				t.Errorf("written: %+v", orders)
			}
			if n := b.Counts().Untrusted; (n == 0) != c.trusted {
				t.Errorf("%d untrusted", n)
			}
			// What was refused for a genuine token stays refused; another's mistake
			// with it decides nothing.
			b.clock.Store(issued + 1)
			again := b.mustSend(t, b.post(t, "/api/order?sku="+lines[0].SKU+fmt.Sprint("&quantity=", lines[0].Quantity)+"&region="+lines[0].Region, "", "", b.sign(t, "r1", lines...)))
			if c.trusted {
				wantStatus(t, again, 403, 403)
			} else {
				wantStatus(t, again, http.StatusCreated, 0)
			}
		})
	}
}

func TestARepeatedIDGetsTheFirstAnswer(t *testing.T) {
	b := newBench(t, shop.Options{})
	signed := b.sign(t, "r1", line("a", 1, ""))
	first := b.mustSend(t, b.request(t, signed))
	wantStatus(t, first, http.StatusCreated, 0)
	for name, again := range map[string]func() *http.Request{
		"the same":       func() *http.Request { return b.request(t, signed) },
		"with its buyer": func() *http.Request { return b.request(t, signed, "X-User-Id", "u1") },
		"another order":  func() *http.Request { return b.post(t, "/api/order?sku=b", "", "", signed) },
		"told to refuse": func() *http.Request { return b.request(t, signed, "X-Misbehave", "status=409") },
		"told code500":   func() *http.Request { return b.request(t, signed, "X-Misbehave", "code500") },
		"expired": func() *http.Request {
			b.clock.Store(expires + 3600)
			return b.request(t, signed)
		},
	} {
		got := b.mustSend(t, again())
		b.clock.Store(issued + 1)
		wantStatus(t, got, http.StatusOK, 0)
		if got.OrderNo != first.OrderNo || got.Reservation != "r1" {
			t.Errorf("%s: %+v, first %+v", name, got, first)
		}
	}
	wantStatus(t, b.mustSend(t, b.request(t, signed, "X-User-Id", "u2")), http.StatusForbidden, 403)
	if orders := b.orders(t); len(orders) != 1 {
		t.Errorf("written: %+v", orders)
	}
}

func TestOneOrderHoweverOftenAtOnce(t *testing.T) {
	b := newBench(t, shop.Options{})
	signed := b.sign(t, "r1", line("a", 1, ""))
	var wg sync.WaitGroup
	var created atomic.Int64
	numbers := make([]string, 50)
	for i := range numbers {
		r := b.request(t, signed)
		wg.Go(func() {
			got, err := b.send(r)
			if err != nil {
				t.Error(err)
			}
			if got.status == http.StatusCreated {
				created.Add(1)
			}
			numbers[i] = got.OrderNo
		})
	}
	wg.Wait()
	for _, n := range numbers {
		if n == "" || n != numbers[0] {
			t.Errorf("order %q beside %q", n, numbers[0])
		}
	}
	if created.Load() != 1 || len(b.orders(t)) != 1 || b.Counts().Tokens["r1"] != 50 {
		t.Errorf("%d created, %d orders, counts %+v", created.Load(), len(b.orders(t)), b.Counts())
	}
}

// 2,000 buyers at once, 100 of them with a token.
func TestACrowd(t *testing.T) {
	b := newBench(t, shop.Options{})
	b.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 200
	const buyers, winners, workers = 2000, 100, 200
	requests := make(chan *http.Request, buyers)
	for i := range buyers {
		signed := ""
		if i%(buyers/winners) == 0 {
			signed = b.sign(t, fmt.Sprint("r", i), line("a", 1, ""))
		}
		requests <- b.request(t, signed)
	}
	close(requests)
	var wg sync.WaitGroup
	var sold, refused atomic.Int64
	for range workers {
		wg.Go(func() {
			for r := range requests {
				switch got, err := b.send(r); {
				case err != nil:
					t.Error(err)
				case got.status == http.StatusCreated:
					sold.Add(1)
				case got.status == http.StatusForbidden:
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if sold.Load() != winners || refused.Load() != buyers-winners || len(b.orders(t)) != winners {
		t.Errorf("sold %d, refused %d, written %d", sold.Load(), refused.Load(), len(b.orders(t)))
	}
	if c := b.Counts(); c.Requests != buyers || c.Attempts != buyers || c.Untrusted != buyers-winners || len(c.Tokens) != winners {
		t.Errorf("counts %d %d %d %d", c.Requests, c.Attempts, c.Untrusted, len(c.Tokens))
	}
}

func TestAnUnchangedShopWritesWhateverComes(t *testing.T) {
	b := newUnchanged(t)
	wantStatus(t, b.mustSend(t, b.request(t, "")), http.StatusUnauthorized, 401)
	signed := b.sign(t, "r1", line("b", 9, ""))
	for _, s := range []string{"", "nonsense", "a.%.c", "a.e30.c", signed, signed} {
		wantStatus(t, b.mustSend(t, b.request(t, s, "X-User-Id", "u2")), http.StatusCreated, 0)
	}
	if got := ids(b.orders(t)); got != "[    r1 r1]" {
		t.Errorf("noted: %s", got)
	}
	if c := b.Counts(); c.Tokens["r1"] != 2 || len(c.Tokens) != 1 {
		t.Errorf("counts %+v", c)
	}
}

func TestOrdersSurviveInTheirFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders ?#%41.sqlite")
	b := newBench(t, shop.Options{DB: file})
	signed := b.sign(t, "r1", line("a", 1, ""))
	first := b.mustSend(t, b.request(t, signed))
	wantStatus(t, first, http.StatusCreated, 0)
	// A second process on the same file, while the first one runs and after.
	for _, when := range []string{"while", "after"} {
		other := newBench(t, shop.Options{DB: file})
		if got := other.mustSend(t, other.request(t, signed)); got.status != http.StatusOK || got.OrderNo != first.OrderNo {
			t.Errorf("%s: %+v, first %+v", when, got, first)
		}
		if got := ids(other.orders(t)); got != "[r1]" {
			t.Errorf("%s: %s", when, got)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLists(t *testing.T) {
	b := newBench(t, shop.Options{})
	for _, id := range []string{"r1", "r2"} {
		wantStatus(t, b.mustSend(t, b.request(t, b.sign(t, id, line("a", 1, "")))), http.StatusCreated, 0)
	}
	wantStatus(t, b.mustSend(t, b.request(t, b.sign(t, "r3", line("a", 1, "")), "X-Misbehave", "status=409")), 409, 409)
	get := func(path string, into any) int {
		response, err := b.client.Get(b.server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if into != nil {
			if err := json.NewDecoder(response.Body).Decode(into); err != nil {
				t.Fatal(err)
			}
		}
		return response.StatusCode
	}
	var all []shop.Order
	if status := get("/orders", &all); status != http.StatusOK || ids(all) != "[r1 r2]" || !reflect.DeepEqual(all, b.orders(t)) {
		t.Errorf("%d %+v", status, all)
	}
	var one shop.Order
	if status := get("/orders/r2", &one); status != http.StatusOK || !reflect.DeepEqual(one, all[1]) {
		t.Errorf("%d %+v", status, one)
	}
	for path, want := range map[string]int{"/orders/r3": 404, "/orders/r4": 404, "/": 200, "/item/a": 200, "/api/order": 200} {
		if status := get(path, nil); status != want {
			t.Errorf("GET %s: %d, want %d", path, status, want)
		}
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	for name, o := range map[string]shop.Options{
		"file in no directory": {DB: filepath.Join(t.TempDir(), "no", "such")},
		"unknown rule":         {Misbehave: "explode"},
		"no way to die":        {Misbehave: "die-after"},
	} {
		if s, err := shop.New(o); err == nil {
			t.Errorf("%s: accepted", name)
			s.Close()
		}
	}
}
