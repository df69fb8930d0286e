package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// inQuery reads orders without a body.
const inQuery = "buyer {header.X-User-Id}\nline {query.sku}"

const oneUnit = `  - {sku: "7", stock: 1}`

// Nothing listens at the shop's address: the order was never sent.
func TestShopDoesNotListen(t *testing.T) {
	t.Parallel()
	e := startEdge(t, site{shop: freeAddr(t)})
	e.sell("flash", oneUnit)
	r := e.buy(one("a", "7", 1, ""))
	if r.status != http.StatusBadGateway {
		t.Errorf("the buyer sees %v", r)
	}
	e.mustState(r.reservation, "released", "never_sent")
	e.expect("flash", 1, 0, 0, 0)
}

// The proxy knows of no healthy shop: the order was never sent.
func TestNoUpstreams(t *testing.T) {
	t.Parallel()
	sick := &recorder{answer: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) }}
	addr := serve(t, sick)
	e := startEdge(t, site{backend: "reverse_proxy " + addr + " {\n health_uri /health\n health_interval 50ms\n}"})
	e.sell("flash", oneUnit)
	eventually(t, "the proxy finds the shop unhealthy", func() bool {
		status, _, _ := e.get("/browse")
		return status == http.StatusServiceUnavailable
	})
	r := e.buy(one("a", "7", 1, ""))
	if r.status != http.StatusServiceUnavailable || r.reason != "" {
		t.Errorf("the buyer sees %v", r)
	}
	e.mustState(r.reservation, "released", "never_sent")
	if sick.orders() != 0 {
		t.Error("the shop got the order")
	}
	e.expect("flash", 1, 0, 0, 0)
}

// The first of two shops is down, the second takes the order.
func TestSecondUpstreamTakesTheOrder(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{backend: fmt.Sprintf("reverse_proxy %s %s {\n lb_policy first\n lb_retries 3\n fail_duration 1m\n}", freeAddr(t), serve(t, s))})
	e.sell("flash", oneUnit)
	r := e.buy(one("a", "7", 1, ""))
	if r.status != http.StatusCreated || s.orders() != 1 {
		t.Errorf("the buyer sees %v, the shop %d orders", r, s.orders())
	}
	e.mustState(r.reservation, "confirmed", "status_201")
}

// A kept connection dies with the order written, and nothing listens any more: net/http
// sends a request without body again and reports that it could not dial. The order may
// exist.
func TestResentOrderIsInDoubt(t *testing.T) {
	t.Parallel()
	headers := []string{"Idempotency-Key", "X-Idempotency-Key", ""}
	orders, warm, sites := make([]atomic.Int32, len(headers)), make([]atomic.Int32, len(headers)), make([]site, len(headers))
	for i := range headers {
		addr := rawShop(t, func(_ int, ln net.Listener, conn net.Conn, in *bufio.Reader) {
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if r.Method == http.MethodGet {
					warm[i].Add(1)
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					continue
				}
				orders[i].Add(1) // the order is written; then the machine dies
				ln.Close()
				return
			}
		})
		sites[i] = site{shop: addr, source: inQuery}
	}
	counters := startCounters(t, sites)
	for i, header := range headers {
		t.Run("header "+header, func(t *testing.T) {
			t.Parallel()
			e := counters[i].of(t)
			e.sell(e.sale, oneUnit)
			if status, _, _ := e.get("/browse"); status != http.StatusOK {
				t.Fatalf("browsing: %d", status)
			}
			o := order{buyer: "a", path: "/api/order?sku=7", header: http.Header{}}
			if header != "" {
				o.header.Set(header, "k1")
			}
			r := e.buy(o)
			if orders[i].Load() != 1 || warm[i].Load() != 1 {
				t.Fatalf("the shop saw %d orders and %d other requests: the test tests nothing", orders[i].Load(), warm[i].Load())
			}
			if r.status != http.StatusBadGateway {
				t.Errorf("the buyer sees %v", r)
			}
			e.mustState(r.reservation, "in_doubt", "connection_lost")
			e.expect(e.sale, 0, 0, 1, 0)
		})
	}
}

// A handler behind the gate panics: before an answer the outcome is unknown, after it
// the answer counts.
func TestPanicBehindTheGate(t *testing.T) {
	t.Parallel()
	e := startEdge(t, site{backend: "e2e_panic"})
	e.sell("flash", oneUnit)
	if r := e.buy(one("a", "7", 1, "")); r.err == nil {
		t.Errorf("the buyer got an answer: %v", r)
	}
	e.untilExpected("flash", 0, 0, 1, 0)
	if holds := e.holds("flash", "in_doubt"); len(holds) != 1 || holds[0].Cause != "panic" {
		t.Errorf("in doubt: %+v", holds)
	}
	// the slot and the buyer are free again
	if r := e.buy(one("b", "7", 1, "")); r.reason != "all_held" {
		t.Errorf("after the panic: %v", r)
	}
	if r := e.buy(one("a", "7", 1, "")); r.reason != "in_doubt" && r.reason != "all_held" {
		t.Errorf("the same again, after the panic: %v", r)
	}
}

// An answer that breaks off: its status has come, and counts.
func TestTruncatedAnswer(t *testing.T) {
	t.Parallel()
	addr := rawShop(t, func(_ int, _ net.Listener, conn net.Conn, in *bufio.Reader) {
		if r, err := http.ReadRequest(in); err == nil {
			io.Copy(io.Discard, r.Body)
			io.WriteString(conn, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"code\":0}")
		}
	})
	tests := []struct {
		name, gate string
		stock      counts
	}{
		{"by status", "", counts{0, 0, 0, 1}},
		{"by json", "@sold {\n json code 0\n}\nconfirm @sold", counts{0, 0, 1, 0}},
	}
	var sites []site
	for _, test := range tests {
		sites = append(sites, site{shop: addr, gate: test.gate})
	}
	counters := startCounters(t, sites)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := counters[i].of(t)
			e.sell(e.sale, oneUnit)
			if r := e.buy(one("a", "7", 1, "")); r.err == nil {
				t.Errorf("the buyer takes it for a whole answer: %v", r)
			}
			e.untilExpected(e.sale, test.stock[0], test.stock[1], test.stock[2], test.stock[3])
		})
	}
}

// What handlers make of the shop's answer does not change the outcome.
func TestVisibleStatusDoesNotDecide(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		shop    int
		outer   string
		backend string // %s: the shop
		sees    int
		state   string
	}{
		{"handle_response hides a yes", 201, "", "reverse_proxy %s {\n @ok status 201\n handle_response @ok {\n  respond \"no\" 500\n }\n}", 500, "confirmed"},
		{"handle_response hides a no", 400, "", "reverse_proxy %s {\n @no status 400\n handle_response @no {\n  respond \"sorry\" 200\n }\n}", 200, "released"},
		{"replace_status", 400, "", "reverse_proxy %s {\n @no status 400\n replace_status @no 200\n}", 200, "released"},
		{"intercept hides a yes", 201, "intercept {\n @ok status 201\n handle_response @ok {\n  respond \"no\" 500\n }\n}", "reverse_proxy %s", 500, "confirmed"},
		{"intercept hides a no", 400, "intercept {\n @no status 400\n handle_response @no {\n  respond \"ok\" 200\n }\n}", "reverse_proxy %s", 200, "released"},
		{"intercept inside", 500, "", "route {\n intercept {\n  @no status 500\n  handle_response @no {\n   respond \"sorry\" 404\n  }\n }\n reverse_proxy %s\n}", 404, "in_doubt"},
		{"handle_response fails", 201, "", "reverse_proxy %s {\n @ok status 201\n handle_response @ok {\n  error \"broken\" 503\n }\n}", 503, "confirmed"},
		{"respond 200", 0, "", "respond \"thanks\" 200", 200, "confirmed"},
		{"respond 400", 0, "", "respond \"no\" 400", 400, "released"},
		{"respond 500", 0, "", "respond \"no\" 500", 500, "in_doubt"},
		{"error 404", 0, "", "error \"no\" 404", 404, "in_doubt"},
		{"nothing behind", 0, "", "header X-Nothing here", 502, "in_doubt"},
	}
	var sites []site
	for _, test := range tests {
		s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(test.shop) }}
		backend := test.backend
		if strings.Contains(backend, "%s") {
			backend = fmt.Sprintf(backend, serve(t, s))
		}
		sites = append(sites, site{outer: test.outer, backend: backend})
	}
	counters := startCounters(t, sites)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := counters[i].of(t)
			e.sell(e.sale, oneUnit)
			r := e.buy(one("a", "7", 1, ""))
			if r.status != test.sees {
				t.Errorf("the buyer sees %v", r)
			}
			want := map[string]counts{"confirmed": {0, 0, 0, 1}, "released": {1, 0, 0, 0}, "in_doubt": {0, 0, 1, 0}}[test.state]
			e.expect(e.sale, want[0], want[1], want[2], want[3])
		})
	}
}

// More than one server answers one attempt. A yes or a failure of one of them must
// not be forgotten because another one refused.
func TestSeveralAnswersToOneAttempt(t *testing.T) {
	t.Parallel()
	no := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	tries := 0
	s, files, twice, inside, before := new(recorder), &recorder{answer: no}, new(recorder), &recorder{answer: ok}, &recorder{answer: ok}
	twice.answer = func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			w.WriteHeader(http.StatusBadGateway) // and the order is written
			return
		}
		w.WriteHeader(http.StatusBadRequest) // for the shop it is a double
	}
	counters := startCounters(t, []site{
		{source: inQuery, backend: fmt.Sprintf("reverse_proxy %s {\n @ok status 201\n handle_response @ok {\n  reverse_proxy %s\n }\n}", serve(t, s), serve(t, files))},
		{source: inQuery, backend: "reverse_proxy " + serve(t, twice) + " {\n lb_retries 2\n lb_retry_match {\n  expression `{http.reverse_proxy.status_code} == 502`\n }\n}"},
		{backend: fmt.Sprintf("handle {\n forward_auth %s {\n  uri /auth\n }\n reverse_proxy %s\n}", serve(t, inside), freeAddr(t))},
		{outer: "forward_auth " + serve(t, before) + " {\n uri /auth\n}", shop: freeAddr(t)},
	})
	t.Run("the yes is replaced by another server's 404", func(t *testing.T) {
		t.Parallel()
		e := counters[0].of(t)
		e.sell(e.sale, oneUnit)
		r := e.buy(order{buyer: "a", path: "/api/order?sku=7"})
		if len(s.requests()) != 1 || len(files.requests()) != 1 {
			t.Fatalf("not both were asked: %v", r)
		}
		e.mustState(r.reservation, "in_doubt", "several_answers")
	})
	t.Run("a failure is tried again and refused", func(t *testing.T) {
		t.Parallel()
		e := counters[1].of(t)
		e.sell(e.sale, oneUnit)
		r := e.buy(order{buyer: "a", path: "/api/order?sku=7"})
		if twice.orders() != 2 || r.status != http.StatusBadRequest {
			t.Fatalf("the order was not tried twice: %v", r)
		}
		e.mustState(r.reservation, "in_doubt", "several_answers")
	})
	t.Run("authentication behind the gate, and no shop", func(t *testing.T) {
		t.Parallel()
		e := counters[2].of(t)
		e.sell(e.sale, oneUnit)
		r := e.buy(one("a", "7", 1, ""))
		if len(inside.requests()) != 1 || r.status != http.StatusBadGateway {
			t.Fatalf("authentication was not asked: %v", r)
		}
		e.mustState(r.reservation, "in_doubt", "connection_lost") // and not confirmed by the 200 of authentication
	})
	t.Run("authentication before the gate", func(t *testing.T) {
		t.Parallel()
		e := counters[3].of(t)
		e.sell(e.sale, oneUnit)
		r := e.buy(one("a", "7", 1, ""))
		e.mustState(r.reservation, "released", "never_sent")
	})
}

// Error routes may proxy to the shop. They must not carry the order past the gate.
func TestErrorRoutesCarryNoOrder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, gate, outer, matcher string
		body                       string // empty: the order is in the query
		drop                       bool   // the shop gives no answer to the order itself
		buyer                      string
		sees                       int
	}{
		{name: "no answer", drop: true, body: `{"sku":"7"}`, buyer: "a"},
		{name: "no answer, order in the query", drop: true, buyer: "a"},
		{name: "refused as error", gate: "refuse error", body: `{"sku":"8"}`, buyer: "a"},
		{name: "refused as error, order in the query", gate: "refuse error", buyer: ""},
		{name: "body over the site's limit", outer: "request_body {\n max_size 5\n}", body: `{"sku":"7"}`, buyer: "a"},
		{name: "body over the site's limit, behind tracing", outer: "request_body {\n max_size 5\n}\ntracing", body: `{"sku":"7"}`, buyer: "a"},
		{name: "refused as error, behind turns", outer: "stockgate_check turns {\n one_at_a_time {header.X-User-Id}\n}", gate: "refuse error", body: `{"sku":"8"}`, buyer: "a"},
		{name: "no answer, behind tracing", outer: "tracing", drop: true, buyer: "a"},
		{name: "refused as error, behind tracing", outer: "tracing", gate: "refuse error", buyer: ""},
	}
	shops, sites := make([]recorder, len(tests)), make([]site, len(tests))
	for i, test := range tests {
		shops[i].answer = func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Stockgate-Token") != "" && test.drop {
				panic(http.ErrAbortHandler)
			}
		}
		addr := serve(t, &shops[i])
		source := "buyer {header.X-User-Id}\nline {json.sku}"
		if test.body == "" {
			source = inQuery
		}
		sites[i] = site{source: source, gate: test.gate, outer: test.outer, matcher: "{\n method POST\n path /api/order\n}",
			backend: "reverse_proxy " + addr + "\nhandle_errors {\n reverse_proxy " + addr + "\n}"}
	}
	counters := startCounters(t, sites)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, e := &shops[i], counters[i].of(t)
			e.sell(e.sale, oneUnit)
			s.forget()
			o := order{buyer: test.buyer, body: test.body, chunked: test.outer != "", path: "/api/order?note=1", header: http.Header{
				"X-Http-Method-Override": {"POST"}, "Stockgate-Token": {"forged"}, "Idempotency-Key": {"k"},
			}}
			if test.body == "" {
				o.path = "/api/order?sku=7"
			}
			r := e.buy(o)
			if strings.Contains(test.outer, "tracing") {
				// the error route has a copy of the request, which still is an attempt: it does not leave
				for _, got := range s.requests() {
					if got.header.Get("Stockgate-Token") == "" || !test.drop {
						t.Errorf("the error route carries the order to the shop: %+v", got)
					}
				}
				if r.status != http.StatusBadRequest {
					t.Errorf("the buyer sees %v, want 400", r)
				}
				return
			}
			eventually(t, "the error route asks the shop", func() bool {
				return slices.ContainsFunc(s.requests(), func(got seen) bool { return got.header.Get("Stockgate-Token") == "" })
			})
			var errors []seen
			for _, got := range s.requests() {
				if got.header.Get("Stockgate-Token") == "" {
					errors = append(errors, got)
				} else if !test.drop {
					t.Errorf("a token on the way of an error: %+v", got)
				}
			}
			if len(errors) != 1 {
				t.Fatalf("the error route did not ask the shop once: %+v, the buyer sees %v", s.requests(), r)
			}
			got := errors[0]
			if body, _, _ := strings.Cut(got.body, "\nUNREADABLE"); body != "" || got.header.Get("Content-Type") != "" || got.header.Get("X-Http-Method-Override") != "" {
				t.Errorf("the error route carries the order to the shop: %+v", got)
			}
			if strings.Contains(got.uri, "sku") || got.method != http.MethodGet {
				t.Errorf("the error route carries an order to the shop: %+v", got)
			}
		})
	}
}
