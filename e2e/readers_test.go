package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// chatty is a shop that refuses buyers named slow with a long page, and sells to others.
func chatty(page int) *recorder {
	text := strings.Repeat("x", page)
	return &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("X-User-Id"), "slow") {
			w.WriteHeader(http.StatusCreated)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(page))
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, text)
	}}
}

// writing is how many answers wait for their clients.
func (e *edge) writing() int { return e.goroutines("forward.(*heldAnswer).Write(") }

// Clients that do not read their answers take no place from those who buy: what the shop
// said is settled. Nor do they keep the desk open.
func TestUnreadAnswersKeepNobodyOut(t *testing.T) {
	t.Parallel()
	e := startEdge(t, site{redis: redisAt(redistest.Start(t).Addr()), shop: serve(t, chatty(6<<10)), tls: true, global: "grace_period 1ms"})
	e.sell("flash", `  - {sku: "7", stock: 300}`)
	for i := range 2 {
		c := dialFramed(t, e, 0)
		go c.read()
		for sent := range 130 { // not all at once: a place is there for 256 at a time
			c.order(fmt.Sprintf("slow-%d-%d", i, sent))
			if sent == 119 || sent == 129 {
				eventuallyf(t, func() bool { n := c.answered(); return n["400"]+n["503busy"] == sent+1 }, func() string {
					return fmt.Sprintf("each order has an answer: %v", c.answered())
				})
			}
		}
		if got := c.answered(); got["400"] != 130 {
			t.Errorf("answers to one connection: %v", got)
		}
	}
	if n := e.writing(); n != 260 {
		t.Errorf("%d answers wait for their clients: the test tests nothing", n)
	}
	for i := range 5 {
		if r := e.buy(one(fmt.Sprint("b", i), "7", 1, "")); r.status != http.StatusCreated {
			t.Errorf("another buyer: %v", r)
		}
	}
	e.expect("flash", 295, 0, 0, 5)
	e.stop()
	if e.log.has("stopping with attempts in flight") {
		t.Error("clients that do not read held the desk")
	}
}

// The same with HTTP/1, where the answer must be longer than what the kernel takes.
func TestUnreadLongAnswerKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	e := startEdge(t, site{redis: redisAt(redistest.Start(t).Addr()), shop: serve(t, chatty(16<<20)), gate: "max_in_flight 1"})
	e.sell("flash", `  - {sku: "7", stock: 10}`)
	e.stall("slow-1")
	eventually(t, "the answer waits for its client", func() bool { return e.writing() == 1 })
	if r := e.buy(one("b", "7", 1, "")); r.status != http.StatusCreated {
		t.Errorf("another buyer: %v", r)
	}
	e.expect("flash", 9, 0, 0, 1)
}

// stall sends an order by HTTP/1 and reads nothing.
func (e *edge) stall(buyer string) net.Conn {
	e.t.Helper()
	conn, err := net.Dial("tcp", e.addr)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /api/order HTTP/1.1\r\nHost: %s\r\nX-User-Id: %s\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"sku\":\"7\"}", e.addr, buyer)
	return conn
}

// What clients cost that do not read is bounded: the one that has taken nothing for longest
// makes room for another one. Its answer breaks off, and does not look whole.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const room = 4 // for max_in_flight 1
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		e := startEdge(t, site{redis: redisAt(redistest.Start(t).Addr()), shop: serve(t, chatty(6<<10)), tls: true, gate: "max_in_flight 1"})
		e.sell("flash", `  - {sku: "7", stock: 10}`)
		c := dialFramed(t, e, 0)
		go c.read()
		var streams []uint32
		for i := range 3 * room {
			eventually(t, "the shop's answer comes", func() bool {
				stream := c.order(fmt.Sprintf("slow-%d", i))
				var r result
				eventually(t, "an answer comes", func() (come bool) { r, come = c.headOf(stream); return come })
				streams = append(streams, stream)
				return r.status == http.StatusBadRequest
			})
		}
		eventually(t, "no more wait than there is room for", func() bool { return e.writing() <= room })
		first := 0
		for _, stream := range streams {
			if r, _ := c.headOf(stream); r.status == http.StatusBadRequest {
				eventually(t, "the first are cut off", func() bool { return c.reset(stream) })
				if first++; first == 2*room {
					break
				}
			}
		}
		e.untilBought("b")
	})
	t.Run("HTTP/1", func(t *testing.T) {
		t.Parallel()
		e := startEdge(t, site{redis: redisAt(redistest.Start(t).Addr()), shop: serve(t, chatty(16<<20)), gate: "max_in_flight 1"})
		e.sell("flash", `  - {sku: "7", stock: 10}`)
		var conns []net.Conn
		for i := range room {
			conns = append(conns, e.stall(fmt.Sprintf("slow-%d", i)))
			eventually(t, "the answer waits for its client", func() bool { return e.writing() == i+1 })
		}
		e.untilBought("b")
		e.untilBought("c")
		eventually(t, "there is room", func() bool { return e.writing() < room })
		whole, broken := 0, 0
		for _, conn := range conns {
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				broken++
			} else {
				whole++
			}
			resp.Body.Close()
		}
		if broken == 0 || whole+broken != room {
			t.Errorf("%d answers came whole, %d broke off", whole, broken)
		}
	})
	t.Run("a connection that takes nothing", func(t *testing.T) {
		t.Parallel()
		e := startEdge(t, site{redis: redisAt(redistest.Start(t).Addr()), shop: serve(t, chatty(16<<20)), tls: true, gate: "max_in_flight 1"})
		e.sell("flash", `  - {sku: "7", stock: 100000}`)
		c := dialFramed(t, e, 1<<30)
		for i := range room {
			c.order(fmt.Sprintf("slow-%d", i))
			eventually(t, "the answer waits for its client", func() bool { return e.writing() == i+1 })
		}
		n := 0
		eventually(t, "the connection is closed", func() bool {
			n++
			e.untilBought(fmt.Sprint("b", n))
			return e.writing() == 0
		})
	})
}

// untilBought buys one unit; the gate may be busy for a moment.
func (e *edge) untilBought(buyer string) {
	e.t.Helper()
	var r result
	eventuallyf(e.t, func() bool { r = e.buy(one(buyer, "7", 1, "")); return r.status == http.StatusCreated }, func() string {
		return fmt.Sprintf("another buyer: %v", r)
	})
}

// hinting is a shop that sends 103 Early Hints before it refuses an order, and a long page
// to buyers named slow.
func hinting() *recorder {
	long := chatty(16 << 20)
	return &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("X-User-Id"), "hint") {
			w.Header().Set("Link", "</a.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		long.answer(w, r)
	}}
}

// A client whose connection takes nothing does not keep its place by the shop's interim
// answers either.
func TestUnreadHintsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	s := hinting()
	e := startEdge(t, site{redis: redisAt(redistest.Start(t).Addr()), shop: serve(t, s), tls: true, gate: "max_in_flight 1"})
	e.sell("flash", `  - {sku: "7", stock: 10}`)
	c := dialFramed(t, e, 1<<30)
	c.order("slow")
	eventually(t, "the connection is full", func() bool { return e.writing() == 1 && e.goroutines("poll.(*pollDesc).waitWrite(") == 1 })
	c.order("hint")
	eventually(t, "the shop has the second order", func() bool { return s.orders() == 2 })
	e.untilBought("b")
	e.untilExpected("flash", 9, 0, 0, 1)
}
