package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
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
	lives   counter
	dies    *edge
	addr    string           // of redis
	redis   *redistest.Proxy // what the first talks to
	shop    *shop.Shop
	station *station
	goOn    func() // lets go on what stands in the shop
	site    site   // of the second
	probe   string // the option that asks the shop
}

// startKillings starts an edge that lives on, with a site and a shop for each of n edges that die.
func startKillings(t *testing.T, n int, gate string) (lives []counter, all []*killing) {
	t.Helper()
	server := redistest.Start(t)
	lives = newCounters(t, n)
	sites := make([]site, n)
	for i := range n {
		s, behind := startShop(t, lives[i].edge)
		k := &killing{lives: lives[i], addr: server.Addr(), shop: s, probe: probing(behind)}
		k.station = &station{shop: s, there: make(chan string, 1), goOn: make(chan struct{})}
		k.goOn = sync.OnceFunc(func() { close(k.station.goOn) })
		k.site = site{redis: redisAt(k.addr), shop: serve(t, k.station), name: k.lives.sale, gate: soonOver + "\n" + gate}
		t.Cleanup(k.goOn) // before the shop closes
		all, sites[i] = append(all, k), k.site
	}
	open(lives, sites)
	return lives, all
}

// begin starts the edge that dies. It sells two units of a flash sale and one of them, so that every script is loaded.
// Both edges keep what is in doubt.
func (k *killing) begin(t *testing.T) {
	t.Helper()
	k.lives, k.dies, k.redis = k.lives.of(t), newEdge(t, ""), redistest.NewProxy(t, k.addr)
	k.dies.storage = k.lives.storage
	same := k.site
	same.redis, same.sale = redisAt(k.redis.Addr()), k.lives.sale
	k.dies.start(same)
	k.dies.sell(k.lives.sale, `  - {sku: "7", stock: 2}`)
	k.lives.untilSelling(k.lives.sale)
	r := k.dies.buy(one("first", "7", 1, ""))
	if r.status != http.StatusCreated {
		t.Fatal(r)
	}
	if strings.Contains(same.gate, "outcome backend") { // who pays is confirmed
		k.lives.must("POST", "reservations/"+r.reservation+"/confirm", "", nil)
	}
}

// untilHeld waits until the proxy holds something back.
func untilHeld(t *testing.T, proxy *redistest.Proxy) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := proxy.WaitHeld(ctx); err != nil {
		t.Fatal(err)
	}
}

// untilStock waits for the stock of its sale: available, held, in doubt, confirmed.
func (k *killing) untilStock(want counts) {
	k.lives.t.Helper()
	k.lives.untilExpected(k.lives.sale, want[0], want[1], want[2], want[3])
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
	steps := []struct {
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
	}
	lives, all := startKillings(t, len(steps), "")
	killed := t.Run("killed", func(t *testing.T) {
		for i, step := range steps {
			t.Run(step.name, func(t *testing.T) {
				t.Parallel()
				k := all[i]
				k.begin(t)
				if err := k.shop.SetMisbehaviour(step.misbehave); err != nil {
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
					untilHeld(t, k.redis)
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
					k.untilStock(counts{1, 0, 0, 1})
				case sold:
					k.untilStock(counts{0, 0, 0, 2})
				case doubtful:
					k.untilStock(counts{0, 0, 1, 1})
					if doubts := k.lives.holds(k.lives.sale, "in_doubt"); len(doubts) != 1 || doubts[0].Cause != "deadline" {
						t.Fatalf("in doubt: %+v", doubts)
					}
				}
			})
		}
	})
	if !killed {
		return
	}
	sites := make([]site, len(all))
	for i, k := range all {
		sites[i] = k.site
		sites[i].gate += k.probe
	}
	reopen(lives, sites)
	for i, step := range steps {
		t.Run(step.name+", and the shop is asked", func(t *testing.T) {
			t.Parallel()
			k := all[i]
			k.lives = k.lives.of(t)
			if step.ordered {
				k.untilStock(counts{0, 0, 0, 2})
			} else {
				k.untilStock(counts{1, 0, 0, 1})
				if err := k.shop.SetMisbehaviour("none"); err != nil {
					t.Fatal(err)
				}
				k.station.before.Store(false)
				k.station.after.Store(false)
				if r := k.lives.buy(one("b", "7", 1, "")); r.status != http.StatusCreated {
					t.Errorf("the unit is back on sale, and a buyer sees %v", r)
				}
			}
			audit(t, k.lives.edge, k.lives.sale, k.shop, nil)
		})
	}
}

// Where the shop decides later, what a killed edge leaves behind goes back on sale at
// its deadline: it was not paid by then.
func TestKilledEdgeInOutcomeBackend(t *testing.T) {
	t.Parallel()
	steps := []struct {
		name          string
		before, after bool
		hold          func(*redistest.Proxy)
	}{
		{name: "reserved, not forwarded", hold: func(p *redistest.Proxy) { p.HoldReplies(reserving()) }},
		{name: "the shop has the request", before: true},
		{name: "the shop has taken it, and not answered", after: true},
		{name: "answered, and redis has not heard", hold: func(p *redistest.Proxy) { p.HoldRequests("EVALSHA free") }},
	}
	_, all := startKillings(t, len(steps), "outcome backend")
	for i, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			k := all[i]
			k.begin(t)
			k.station.before.Store(step.before)
			k.station.after.Store(step.after)
			if step.hold != nil {
				step.hold(k.redis)
			}
			done := k.dies.goBuy(one("a", "7", 1, ""))
			if step.hold == nil {
				await(t, "the shop has the order", k.station.there)
			} else {
				untilHeld(t, k.redis)
			}
			k.dies.kill()
			k.redis.DropAll()
			k.goOn()
			await(t, "the buyer's answer", done)
			k.untilStock(counts{1, 0, 0, 1})
			k.station.before.Store(false)
			k.station.after.Store(false)
			if r := k.lives.buy(one("b", "7", 1, "")); r.status != http.StatusCreated {
				t.Errorf("the unit is back on sale, and a buyer sees %v", r)
			}
			k.lives.expect(k.lives.sale, 0, 1, 0, 1)
		})
	}
}
