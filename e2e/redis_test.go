package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// mustBeUnavailable fails unless an order is refused because Redis does not answer, and
// the rest of the site works.
func (e *edge) mustBeUnavailable(buyer string) {
	e.t.Helper()
	r := e.buy(one(buyer, "7", 1, ""))
	if r.status != http.StatusServiceUnavailable || r.reason != "unavailable" || r.header.Get("Retry-After") == "" {
		e.t.Errorf("without redis a buyer sees %v %v", r, r.header)
	}
	if status, _, _ := e.get("/browse"); status != http.StatusOK {
		e.t.Errorf("without redis browsing gives %d", status)
	}
}

// Redis ends in mid-sale and comes back: attempts are refused meanwhile, then all
// that is left is sold, and not one unit more.
func TestRedisRestartsInMidSale(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Config("appendonly yes", "appendfsync always"))
	e := newEdge(t, "")
	s, addr := startShop(t, e)
	e.start(site{redis: redisAt(server.Addr()), shop: addr, gate: roomy})
	e.sell("flash", `  - {sku: "7", stock: 60}`)
	if err := s.SetMisbehaviour("delay=20ms:0.5,delay-after=20ms:0.5"); err != nil {
		t.Fatal(err)
	}
	done := make(chan []result, 1)
	go func() {
		done <- crowd(buyers(100, func(i int) order { return one(fmt.Sprintf("buyer-%d", i), "7", 1, "") }), comesBack, e)
	}()
	eventually(t, "some units are sold", func() bool {
		orders, err := s.Orders(context.Background())
		return err == nil && len(orders) >= 10
	})
	server.Stop()
	// until it reads the journal again, some milliseconds, the edge may remember that all are held
	eventually(t, "the edge has noticed", func() bool { return e.buy(one("outsider", "7", 1, "")).reason == "unavailable" })
	eventually(t, "the edge goes by what it remembers no more", func() bool { return e.metric(`stockgate_degraded{part="view"}`) == 1 })
	e.mustBeUnavailable("outsider")
	server.Restart()
	results := <-done
	e.untilExpected("flash", 0, 0, 0, 60)
	audit(t, e, "flash", s, results)
	if sum := tally(results); sum["201"] != 60 || sum["sold_out"] != 40 {
		t.Errorf("answers: %v", sum)
	}
}

// Without a Redis Caddy starts and serves its site; the gate recovers by itself.
func TestRedisIsDownAtTheStart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Stop()
	e := newEdge(t, "")
	s, addr := startShop(t, e)
	e.start(site{redis: redisAt(server.Addr()), shop: addr})
	e.mustBeUnavailable("early")
	server.Restart()
	e.sell("flash", oneUnit)
	r := e.buy(one("a", "7", 1, ""))
	if r.status != http.StatusCreated {
		t.Errorf("with redis: %v", r)
	}
	audit(t, e, "flash", s, []result{r})
}

// Redis is gone exactly when the shop has answered: the buyer hears the shop, and
// Redis hears it when it is back.
func TestRedisIsGoneAtTheResolution(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		state  string
	}{{201, "confirmed"}, {400, "released"}, {500, "in_doubt"}}
	working, answer := make(chan string, len(tests)), make(chan struct{})
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	sites := make([]site, len(tests))
	for i, test := range tests {
		sites[i] = site{redis: redisAt(proxy.Addr()), shop: serve(t, &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
			working <- ""
			<-answer
			w.WriteHeader(test.status)
		}})}
	}
	counters, done := startCounters(t, sites), make([]<-chan result, len(tests))
	for i, c := range counters {
		c.sell(c.sale, oneUnit)
		done[i] = c.goBuy(one("a", "7", 1, ""))
		await(t, "the shop has the order", working)
	}
	proxy.DropAll()
	close(answer)
	results := make([]result, len(tests))
	for i, test := range tests {
		results[i] = await(t, "the buyer's answer", done[i])
		if r := results[i]; r.status != test.status || r.reservation == "" {
			t.Errorf("the buyer sees %v", r)
		}
	}
	proxy.Heal()
	e := counters[0]
	eventually(t, "the edge hears redis again", func() bool { status, _ := e.askAdmin("GET", "sales/"+e.sale, "", nil); return status == 200 })
	for i, test := range tests {
		e.untilState(results[i].reservation, test.state)
	}
}

// A stalled Redis executes what it has read, long after the edge gave up: no hold is
// left without an owner.
func TestStalledRedisLeavesNoHold(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	s := new(recorder)
	s.answer = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) }
	e := startEdge(t, site{redis: redisIn(proxy.Addr(), "5s"), shop: serve(t, s)})
	e.sell("flash", `  - {sku: "7", stock: 5}`)
	for round := range 3 {
		if r := e.buyOnceHeard(one(fmt.Sprintf("before-%d", round), "7", 1, "")); r.status != http.StatusOK {
			t.Fatalf("before: %v", r)
		}
		s.forget()
		server.Pause()
		e.mustBeUnavailable(fmt.Sprintf("stalled-%d", round))
		server.Resume()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := proxy.WaitIdle(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		if n := s.orders(); n != 0 {
			t.Errorf("the shop got %d orders", n)
		}
		eventually(t, "the edge hears redis again", func() bool {
			return e.buy(one("probe", "none", 1, "")).reason == "unknown_item"
		})
		e.untilExpected("flash", int64(4-round), 0, 0, int64(round+1))
	}
}

// Replies that are lost after Redis has executed: nothing happens twice, nothing
// is lost.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	e := newEdge(t, "")
	s, addr := startShop(t, e)
	e.start(site{redis: redisAt(proxy.Addr()), shop: addr, gate: "hold_for 1h"}) // what is given up is released before it is in doubt
	e.sell("flash", `  - {sku: "7", stock: 20}`)
	proxy.CutReplies(60, "EVALSHA")
	results := crowd(buyers(40, func(i int) order { return one(fmt.Sprintf("buyer-%d", i), "7", 1, "") }), comesBack, e)
	if left := proxy.CutsLeft(); left > 0 {
		t.Errorf("%d replies were not cut", left)
	}
	e.untilExpected("flash", 0, 0, 0, 20)
	audit(t, e, "flash", s, results)
	if sum := tally(results); sum["201"] != 20 || sum["sold_out"] != 20 {
		t.Errorf("answers: %v", sum)
	}
}
