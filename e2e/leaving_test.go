package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// A buyer who leaves while the shop works changes nothing: the shop's answer counts.
func TestBuyerLeavesWhileTheShopWorks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		state  string
	}{{201, "confirmed"}, {400, "released"}, {500, "in_doubt"}}
	working, answer, sites := make(chan string, 1), make([]chan struct{}, len(tests)), make([]site, len(tests))
	for i, test := range tests {
		answer[i] = make(chan struct{})
		sites[i] = site{shop: serve(t, &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				working <- ""
				select {
				case <-answer[i]:
				case <-r.Context().Done():
					working <- "the edge has left"
				}
			}
			w.WriteHeader(test.status)
		}})}
	}
	sites[0].redis = redisAt(redistest.Start(t).Addr())
	counters := startCounters(t, sites)
	for i, test := range tests {
		t.Run(fmt.Sprint(test.status), func(t *testing.T) { // one after the other: untilBuyersLeft looks at all sites
			e := counters[i].of(t)
			e.sell(e.sale, oneUnit)
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			left := make(chan result, 1)
			go func() { left <- e.buyContext(ctx, one("a", "7", 1, "")) }()
			await(t, "the shop has the order", working)
			leave()
			if r := await(t, "the buyer has left", left); r.err == nil {
				t.Fatalf("the buyer did not leave: %v", r)
			}
			e.untilBuyersLeft()
			e.expect(e.sale, 0, 1, 0, 0)
			id := e.onlyHold(e.sale)
			close(answer[i])
			e.untilState(id, test.state)
			select {
			case what := <-working:
				t.Errorf("the forwarded request ended with the buyer: %s", what)
			default:
			}
		})
	}
}

// untilBuyersLeft waits until the edge has noticed that connections have ended: no
// goroutine looks for the next byte of a client while its request is served.
func (e *edge) untilBuyersLeft() {
	e.t.Helper()
	eventually(e.t, "the edge notices that the buyer has left", func() bool {
		dump, err := e.dump()
		if err != nil {
			e.t.Fatal(err)
		}
		for _, g := range strings.Split(dump, "\n\n") {
			if strings.Contains(g, "backgroundRead") && !strings.Contains(g, "admin") && strings.Contains(g, "IO wait") &&
				!isAdminConnection(g, dump) {
				return false
			}
		}
		return true
	})
}

// isAdminConnection: the admin endpoint reads in the background too, for the very
// request that dumps the goroutines.
func isAdminConnection(g, dump string) bool {
	_, creator, _ := strings.Cut(g, "in goroutine ")
	creator, _, _ = strings.Cut(creator, "\n")
	for _, other := range strings.Split(dump, "\n\n") {
		if strings.HasPrefix(strings.TrimSpace(other), "goroutine "+creator+" ") {
			return strings.Contains(other, "adminHandler")
		}
	}
	return false
}

// A buyer who leaves before the stock is held, or while it is being held, holds nothing
// and puts nothing in doubt.
func TestBuyerLeavesWhileReserving(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	e := startEdge(t, site{redis: redisIn(proxy.Addr(), "1m"), shop: serve(t, s)})
	e.sell("flash", oneUnit)
	e.buy(one("unknown", "none", 1, "")) // all connections of the test are warm

	proxy.HoldRequests("EVALSHA")
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan result, 1)
	go func() { left <- e.buyContext(ctx, one("a", "7", 1, "")) }()
	eventually(t, "the reserve is under way", func() bool { return e.goroutines("reservation.(*Store).Reserve") == 1 })
	leave()
	await(t, "the buyer has left", left)
	e.untilBuyersLeft()
	proxy.ReleaseRequests()
	eventually(t, "the attempt has ended", func() bool { return e.goroutines("gate/order.(*Taker).Sell") == 0 })
	e.untilExpected("flash", 1, 0, 0, 0)
	if r := e.buyOnceHeard(one("b", "7", 1, "")); r.status != http.StatusCreated {
		t.Errorf("the unit was not sold to the next: %v", r)
	}
	if s.orders() != 1 {
		t.Errorf("the shop got %d orders, it should get one", s.orders())
	}
}

// A buyer who trickles the body holds no stock, and neither does one who leaves in the
// middle of it or sends less than announced.
func TestTricklingBuyerHoldsNothing(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	e := startEdge(t, site{redis: redisAt(redistest.Start(t).Addr()), shop: serve(t, s), gate: "max_in_flight 1"})
	e.sell("flash", oneUnit)
	head := "POST /api/order HTTP/1.1\r\nHost: " + e.addr + "\r\nX-User-Id: trickle\r\nContent-Type: application/json\r\n"
	var slow []net.Conn
	for _, start := range []string{
		head + "Content-Length: 24\r\n\r\n{\"sku\":\"7\"",
		head + "Transfer-Encoding: chunked\r\n\r\n18\r\n{\"sku\":\"7\"",
	} {
		conn, err := net.Dial("tcp", e.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, start)
		slow = append(slow, conn)
	}
	eventually(t, "the edge reads the bodies", func() bool { return e.goroutines("attempt.ReadBody") == 2 })
	if r := e.buy(one("b", "7", 1, "")); r.status != http.StatusCreated {
		t.Errorf("another buyer found no unit or no room: %v", r)
	}
	for _, conn := range slow {
		conn.Close()
	}
	eventually(t, "the edge has given up", func() bool { return e.goroutines("attempt.ReadBody") == 0 })
	e.expect("flash", 0, 0, 0, 1)
	if s.orders() != 1 {
		t.Errorf("the shop got %d orders", s.orders())
	}
	if e.log.has(`"status":500`) || strings.Contains(e.log.tail(), "http.log.error") {
		t.Errorf("a buyer who leaves is no error of the server:\n%s", e.log.tail())
	}
}

// A buyer who leaves before the answer comes finds it under their key.
func TestLeavingBuyerFindsHisAnswer(t *testing.T) {
	t.Parallel()
	working, answer := make(chan string, 1), make(chan struct{})
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		working <- ""
		<-answer
		w.WriteHeader(http.StatusCreated)
		for range 8 { // each piece goes on to the buyer at once
			io.WriteString(w, strings.Repeat("o", 256))
			http.NewResponseController(w).Flush()
		}
	}}
	e := startEdge(t, site{redis: redisAt(redistest.Start(t).Addr()), shop: serve(t, s), gate: retries})
	e.sell("flash", oneUnit)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan result, 1)
	go func() { left <- e.buyContext(ctx, one("a", "7", 1, "").under("k1")) }()
	await(t, "the shop has the order", working)
	leave()
	await(t, "the buyer has left", left)
	e.untilBuyersLeft()
	close(answer)
	e.untilExpected("flash", 0, 0, 0, 1)
	eventually(t, "the attempt has ended", func() bool { return e.goroutines("gate/order.(*Taker).Sell") == 0 })
	r := e.buy(one("a", "7", 1, "").under("k1"))
	if r.status != 201 || r.body != strings.Repeat("o", 2048) || r.header.Get("Stockgate-Replayed") != "true" {
		t.Errorf("the buyer comes back: %v", r)
	}
}
