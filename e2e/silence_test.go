package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// halfClosed is a client that has sent an order and ended its own side of the connection.
type halfClosed struct {
	t    *testing.T
	conn *net.TCPConn
}

func (e *edge) halfClose(buyer string) halfClosed {
	e.t.Helper()
	conn, err := net.Dial("tcp", e.addr)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "POST /api/order HTTP/1.1\r\nHost: %s\r\nX-User-Id: %s\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"sku\":\"7\"}", e.addr, buyer)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		e.t.Fatal(err)
	}
	return halfClosed{e.t, conn.(*net.TCPConn)}
}

// answer is what it hears.
func (c halfClosed) answer() result {
	c.t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(c.conn), nil)
	if err != nil {
		return result{err: err}
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return result{
		status: r.StatusCode, header: r.Header, body: string(body), err: err,
		reason: r.Header.Get("Stockgate-Refusal"), reservation: r.Header.Get("Stockgate-Reservation"),
	}
}

// A client that has ended its side of the connection before its stock is held buys
// nothing, and hears so.
func TestHalfClosedWhileReserving(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	// fence off: an answer after the lease would be no promise, and the refusal another one
	e := startEdge(t, site{redis: proxy.Addr() + " {\n timeout 20s\n fence off\n}", shop: serve(t, s)})
	e.sell("flash", oneUnit)
	proxy.HoldRequests("EVALSHA")
	c := e.halfClose("a")
	eventually(t, "the reserve is under way", func() bool { return e.goroutines("reservation.(*Store).Reserve") == 1 })
	e.untilBuyersLeft()
	proxy.ReleaseRequests()
	r := c.answer()
	if r.status != http.StatusServiceUnavailable || r.reason != "unavailable" || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "the connection was closed before") {
		t.Errorf("it hears %v %v", r, r.header)
	}
	e.untilExpected("flash", 1, 0, 0, 0)
	if s.orders() != 0 {
		t.Errorf("the shop got %d orders", s.orders())
	}
}

// Whenever it ends its side: who hears yes has an order, and the shop has no other.
func TestHalfClosedHearsTheTruth(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{redis: redisAt(redistest.Start(t).Addr()), shop: serve(t, s)})
	e.sell("flash", `  - {sku: "7", stock: 100}`)
	var clients []halfClosed
	for i := range 30 {
		clients = append(clients, e.halfClose(fmt.Sprint("a", i)))
	}
	heard := 0
	for _, c := range clients {
		switch r := c.answer(); {
		case r.err != nil:
			t.Errorf("no answer: %v", r)
		case r.status == http.StatusCreated && r.reservation != "":
			heard++
		case r.status != http.StatusServiceUnavailable || r.reason != "unavailable":
			t.Errorf("it hears %v", r)
		}
	}
	if s.orders() != heard {
		t.Errorf("the shop got %d orders, %d clients heard yes", s.orders(), heard)
	}
	e.untilExpected("flash", int64(100-heard), 0, 0, int64(heard))
}

// While the shop works a client may end its side: it hears the shop.
func TestHalfClosedWhileTheShopWorks(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	e := startEdge(t, site{redis: redisAt(proxy.Addr()), shop: serve(t, s)})
	e.sell("flash", oneUnit)
	conn, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/order HTTP/1.1\r\nHost: %s\r\nX-User-Id: a\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"sku\":\"7\"}", e.addr)
	await(t, "the shop has the order", s.working)
	conn.(*net.TCPConn).CloseWrite()
	e.untilBuyersLeft()
	s.answer <- 201
	r := halfClosed{t, conn.(*net.TCPConn)}.answer()
	if r.status != http.StatusCreated || r.err != nil {
		t.Errorf("it hears %v", r)
	}
	e.expect("flash", 0, 0, 0, 1)
}

// A shop that switches protocols has not answered: the client gets neither a success
// nor a tunnel to it.
func TestShopSwitchesProtocols(t *testing.T) {
	t.Parallel()
	var names []string
	var sites []site
	var tunnelled []chan string
	for _, head := range []string{"", "Upgrade: nothing\r\nConnection: Upgrade\r\n", "Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 5\r\n"} {
		for _, gate := range []string{"", "idempotency {header.Idempotency-Key}", "@sold {\n json code 0\n}\nconfirm @sold"} {
			through := make(chan string, 1)
			addr := rawShop(t, func(_ int, _ net.Listener, conn net.Conn, in *bufio.Reader) {
				if r, err := http.ReadRequest(in); err == nil {
					io.Copy(io.Discard, r.Body)
					io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n"+head+"\r\nhello")
					rest, _ := io.ReadAll(in)
					through <- string(rest)
				}
			})
			names, sites, tunnelled = append(names, head+gate), append(sites, site{shop: addr, gate: gate}), append(tunnelled, through)
		}
	}
	counters := startCounters(t, sites)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := counters[i].of(t)
			e.sell(e.sale, oneUnit)
			r := e.raw(t, "POST /api/order HTTP/1.1\nHost: HOST\nConnection: close\nX-User-Id: a\nIdempotency-Key: "+e.sale+"\nContent-Type: application/json\nContent-Length: 11\n\n{\"sku\":\"7\"}GET /secret HTTP/1.1\r\n\r\n")
			if r.err == nil && (r.status != http.StatusBadGateway || !strings.Contains(r.body, `"reason":"in_doubt"`)) || strings.Contains(r.body, "hello") {
				t.Errorf("the buyer sees %v", r)
			}
			if rest := await(t, "the shop's connection ends", tunnelled[i]); rest != "" {
				t.Errorf("the shop got %q through the gate", rest)
			}
			e.expect(e.sale, 0, 0, 1, 0)
			if holds := e.holds(e.sale, "in_doubt"); len(holds) != 1 || holds[0].Cause != "status_101" {
				t.Errorf("in doubt: %+v", holds)
			}
		})
	}
}

// Where nothing behind the gate has written an answer, the client gets the shop's
// status, or an error if there was none; never an invented success.
func TestNobodyWritesAnAnswer(t *testing.T) {
	t.Parallel()
	type outcome struct {
		name    string
		shop    int
		backend string
		method  string
		sees    int
		state   string
	}
	var tests []outcome
	var sites []site
	for _, test := range []outcome{
		{"handle_response drops a no", 400, "reverse_proxy %s {\n handle_response {\n  header X-Dropped yes\n }\n}", "POST", 400, "released"},
		{"handle_response drops a yes", 201, "reverse_proxy %s {\n handle_response {\n  header X-Dropped yes\n }\n}", "POST", 201, "confirmed"},
		{"handle_response drops a failure", 500, "reverse_proxy %s {\n handle_response {\n  header X-Dropped yes\n }\n}", "POST", 500, "in_doubt"},
		{"HEAD", 400, "reverse_proxy %s {\n handle_response {\n  header X-Dropped yes\n }\n}", "HEAD", 400, "released"},
		{"no shop", 0, "header X-Nothing here", "POST", 502, "in_doubt"},
		{"no shop, an error route", 0, "header X-Nothing here\nhandle_errors {\n header X-Error route\n respond \"sorry\" {err.status_code}\n}", "POST", 502, "in_doubt"},
	} {
		for _, gate := range []string{"", "idempotency {header.Idempotency-Key}", "@sold {\n json code 0\n}\nconfirm @sold 201"} {
			s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(test.shop) }}
			backend := test.backend
			if test.shop != 0 {
				backend = fmt.Sprintf(backend, serve(t, s))
			}
			tests, sites = append(tests, test), append(sites, site{backend: backend, gate: gate, source: inQuery})
		}
	}
	counters := startCounters(t, sites)
	for i, test := range tests {
		t.Run(test.name+sites[i].gate, func(t *testing.T) {
			t.Parallel()
			e := counters[i].of(t)
			e.sell(e.sale, oneUnit)
			r := e.raw(t, test.method+" /api/order?sku=7 HTTP/1.1\nHost: HOST\nX-User-Id: a\nIdempotency-Key: "+e.sale+"\n\n")
			if r.err != nil || r.status != test.sees || r.reservation == "" {
				t.Errorf("the buyer sees %v", r)
			}
			want := map[string]counts{"confirmed": {0, 0, 0, 1}, "released": {1, 0, 0, 0}, "in_doubt": {0, 0, 1, 0}}[test.state]
			e.expect(e.sale, want[0], want[1], want[2], want[3])
		})
	}
}

// A handler that fails when a part of its answer has left: the connection breaks off,
// so that no client takes the part for the whole.
func TestPartOfAnAnswer(t *testing.T) {
	t.Parallel()
	e := startEdge(t, site{backend: "e2e_part\nhandle_errors {\n respond \"sorry\" 500\n}"})
	e.sell("flash", oneUnit)
	if r := e.buy(one("a", "7", 1, "")); r.err == nil || r.status != http.StatusOK {
		t.Errorf("the buyer takes it for a whole answer: %d %v", r.status, r.err)
	}
	e.untilExpected("flash", 0, 0, 0, 1) // its status has come, and counts
}
