package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stockgate/stockgate/internal/shop"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/lua"
)

// reserving is a call that reserves, for a proxy: the script does nothing else. It is a function because each edge
// is this binary, and would put all scripts together at its start.
func reserving() string { return "EVALSHA " + lua.Redis().Of(lua.Reserve).SHA }

// probing is the gate's option that asks the shop, soon and often.
func probing(shop string) string {
	return "\nin_doubt probe http://" + shop + "/orders/{id} {\n every 500ms\n longest 1s\n timeout 500ms\n tries 1000\n}\n"
}

// station holds the orders that come to a shop: before the shop has read them, or
// when it has decided and not yet answered.
type station struct {
	shop          http.Handler
	before, after atomic.Bool
	there         chan string   // an order stands here
	goOn          chan struct{} // closed: it goes on
}

func (s *station) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// It keeps its orders, whichever process dies meanwhile.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r = r.WithContext(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	stop := func(here bool) {
		if here && r.Method == http.MethodPost {
			s.there <- ""
			<-s.goOn
		}
	}
	stop(s.before.Load())
	if !s.after.Load() {
		s.shop.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	s.shop.ServeHTTP(answer, r)
	stop(true)
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// killing is one edge that dies, another that lives on, and what lies between them.
type killing struct {
	t           *testing.T
	dies, lives *edge
	redis       *redistest.Proxy // what the first talks to
	station     *station
	goOn        func() // lets go on what stands in the shop
}

// startKilling sells two units of a flash sale and one of them, so that every script
// is loaded. Both edges keep what is in doubt.
func startKilling(t *testing.T, gate string) (k *killing, s *shop.Shop, same site, probeAt string) {
	t.Helper()
	server := redistest.Start(t)
	k = &killing{t: t, dies: newEdge(t, ""), lives: newEdge(t, ""), redis: redistest.NewProxy(t, server.Addr())}
	k.lives.storage = k.dies.storage
	s, probeAt = startShop(t, k.lives)
	k.station = &station{shop: s, there: make(chan string, 1), goOn: make(chan struct{})}
	k.goOn = sync.OnceFunc(func() { close(k.station.goOn) })
	t.Cleanup(k.goOn)
	same = site{redis: redisAt(k.redis.Addr()), shop: serve(t, k.station), gate: soonOver + "\n" + gate}
	k.dies.start(same)
	same.redis = redisAt(server.Addr())
	k.lives.start(same)
	k.dies.sell("flash", `  - {sku: "7", stock: 2}`)
	k.lives.untilSelling("flash")
	r := k.dies.buy(one("first", "7", 1, ""))
	if r.status != http.StatusCreated {
		t.Fatal(r)
	}
	if gate != "" { // outcome backend: who pays is confirmed
		k.lives.must("POST", "reservations/"+r.reservation+"/confirm", "", nil)
	}
	return k, s, same, probeAt
}

// untilHeld waits until the proxy holds something back.
func (k *killing) untilHeld() {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), patience)
	defer cancel()
	if err := k.redis.WaitHeld(ctx); err != nil {
		k.t.Fatal(err)
	}
}

// An edge that is killed, at any step of an attempt, loses no unit and sells none
// twice. Where the shop may have been asked the hold is in doubt from its deadline on,
// and stays so; with the probe the shop's word ends it.
func TestKilledEdgeAtEveryStep(t *testing.T) {
	t.Parallel()
	const ( // what becomes of the unit while no probe asks
		free     = "free"
		doubtful = "in doubt"
		sold     = "sold"
	)
	for _, step := range []struct {
		name          string
		before, after bool   // where the order stands in the shop
		misbehave     string // of the shop
		hold          func(*redistest.Proxy)
		held          bool                   // it is waited for
		afterwards    func(*redistest.Proxy) // when the edge is dead
		half          bool                   // only half of the request comes
		unit          string
		ordered       bool // the shop has the order in the end
	}{
		{name: "the request has not come whole", half: true, unit: free},
		{name: "the reserve is lost", held: true, unit: free,
			hold:       func(p *redistest.Proxy) { p.HoldRequests(reserving()) },
			afterwards: (*redistest.Proxy).DropAll},
		{name: "the reserve runs when the edge is dead", held: true, unit: doubtful,
			hold:       func(p *redistest.Proxy) { p.HoldRequests(reserving()) },
			afterwards: (*redistest.Proxy).ReleaseRequests},
		{name: "reserved, not forwarded", held: true, unit: doubtful,
			hold: func(p *redistest.Proxy) { p.HoldReplies(reserving()) }},
		{name: "the shop has the request, and takes it", before: true, unit: doubtful, ordered: true},
		{name: "the shop has the request, and refuses it", before: true, misbehave: "status=400", unit: doubtful},
		{name: "the shop has the request, and loses it", before: true, misbehave: "drop-before", unit: doubtful},
		{name: "the shop has taken it, and not answered", after: true, unit: doubtful, ordered: true},
		{name: "the confirm is lost", held: true, unit: doubtful, ordered: true,
			hold:       func(p *redistest.Proxy) { p.HoldRequests("EVALSHA confirm") },
			afterwards: (*redistest.Proxy).DropAll},
		{name: "the confirm runs when the edge is dead", held: true, unit: sold, ordered: true,
			hold:       func(p *redistest.Proxy) { p.HoldRequests("EVALSHA confirm") },
			afterwards: (*redistest.Proxy).ReleaseRequests},
		{name: "the release is lost", held: true, misbehave: "status=400", unit: doubtful,
			hold:       func(p *redistest.Proxy) { p.HoldRequests("EVALSHA release") },
			afterwards: (*redistest.Proxy).DropAll},
		{name: "the doubt is lost", held: true, misbehave: "500-after", unit: doubtful, ordered: true,
			hold:       func(p *redistest.Proxy) { p.HoldRequests("EVALSHA doubt") },
			afterwards: (*redistest.Proxy).DropAll},
		{name: "confirmed, the buyer not told", held: true, unit: sold, ordered: true,
			hold: func(p *redistest.Proxy) { p.HoldReplies("EVALSHA confirm") }},
	} {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			k, s, keep, behind := startKilling(t, "")
			if err := s.SetMisbehaviour(step.misbehave); err != nil {
				t.Fatal(err)
			}
			k.station.before.Store(step.before)
			k.station.after.Store(step.after)
			if step.hold != nil {
				step.hold(k.redis)
			}

			var done <-chan result
			if step.half {
				conn, err := net.Dial("tcp", k.dies.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				fmt.Fprintf(conn, "POST /api/order HTTP/1.1\r\nHost: %s\r\nX-User-Id: a\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n{\"sku\":\"7\",", k.dies.addr)
			} else {
				done = k.dies.goBuy(one("a", "7", 1, ""))
			}
			if step.before || step.after {
				await(t, "the shop has the order", k.station.there)
			}
			if step.held {
				k.untilHeld()
			}
			k.dies.kill()
			if step.afterwards != nil {
				step.afterwards(k.redis)
			}
			k.goOn()
			if done != nil {
				if r := await(t, "the buyer's answer", done); r.err == nil {
					t.Errorf("the buyer sees %v", r)
				}
			}

			switch step.unit {
			case free:
				k.lives.untilExpected("flash", 1, 0, 0, 1)
			case sold:
				k.lives.untilExpected("flash", 0, 0, 0, 2)
			case doubtful:
				k.lives.untilExpected("flash", 0, 0, 1, 1)
				if doubts := k.lives.holds("flash", "in_doubt"); len(doubts) != 1 || doubts[0].Cause != "deadline" {
					t.Fatalf("in doubt: %+v", doubts)
				}
			}
			probe := keep
			probe.gate += probing(behind)
			k.lives.mustReload(probe)
			if step.ordered {
				k.lives.untilExpected("flash", 0, 0, 0, 2)
			} else {
				k.lives.untilExpected("flash", 1, 0, 0, 1)
				if err := s.SetMisbehaviour("none"); err != nil {
					t.Fatal(err)
				}
				k.station.before.Store(false)
				k.station.after.Store(false)
				if r := k.lives.buy(one("b", "7", 1, "")); r.status != http.StatusCreated {
					t.Errorf("the unit is back on sale, and a buyer sees %v", r)
				}
			}
			audit(t, k.lives, "flash", s, nil)
		})
	}
}

// Where the shop decides later, what a killed edge leaves behind goes back on sale at
// its deadline: it was not paid by then.
func TestKilledEdgeInOutcomeBackend(t *testing.T) {
	t.Parallel()
	for _, step := range []struct {
		name          string
		before, after bool
		hold          func(*redistest.Proxy)
	}{
		{name: "reserved, not forwarded", hold: func(p *redistest.Proxy) { p.HoldReplies(reserving()) }},
		{name: "the shop has the request", before: true},
		{name: "the shop has taken it, and not answered", after: true},
		{name: "answered, and redis has not heard", hold: func(p *redistest.Proxy) { p.HoldRequests("EVALSHA free") }},
	} {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			k, _, _, _ := startKilling(t, "outcome backend")
			k.station.before.Store(step.before)
			k.station.after.Store(step.after)
			if step.hold != nil {
				step.hold(k.redis)
			}
			done := k.dies.goBuy(one("a", "7", 1, ""))
			if step.hold == nil {
				await(t, "the shop has the order", k.station.there)
			} else {
				k.untilHeld()
			}
			k.dies.kill()
			k.redis.DropAll()
			k.goOn()
			await(t, "the buyer's answer", done)
			k.lives.untilExpected("flash", 1, 0, 0, 1)
			k.station.before.Store(false)
			k.station.after.Store(false)
			if r := k.lives.buy(one("b", "7", 1, "")); r.status != http.StatusCreated {
				t.Errorf("the unit is back on sale, and a buyer sees %v", r)
			}
			k.lives.expect("flash", 0, 1, 0, 1)
		})
	}
}
