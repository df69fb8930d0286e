package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/token"
)

// twoEdges starts two edges with one Redis, one storage and one shop, which trusts
// the first one's JWKS.
func twoEdges(t *testing.T, s site) (first, second *edge, redis *redistest.Server) {
	t.Helper()
	redis = redistest.Start(t)
	s.redis = redisAt(redis.Addr())
	first, second = newEdge(t, ""), newEdge(t, "")
	second.storage = first.storage
	first.start(s)
	second.start(s)
	return first, second, redis
}

// Two Caddy processes sell one sale together.
func TestTwoEdgesSellOneSale(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	first, second := newEdge(t, ""), newEdge(t, "")
	second.storage = first.storage
	s, addr := startShop(t, first) // both sign with the key that the first publishes
	same := site{redis: redisAt(server.Addr()), shop: addr, gate: roomy}
	first.start(same)
	second.start(same)
	units := draw.Times(40, 100)
	first.sell("double11", fmt.Sprintf(`  - {sku: "20002001", stock: %d}`, units+2))
	second.untilSelling("double11")
	early := []result{
		first.mustBuy(one("early-0", "20002001", 1, ""), 201, ""),
		second.mustBuy(one("early-1", "20002001", 1, ""), 201, ""),
	}

	results := crowd(buyers(5*units, func(i int) order { return one(fmt.Sprintf("buyer-%d", i), "20002001", 1, "") }), comesBack, first, second)

	audit(t, first, "double11", s, append(early, results...))
	second.expect("double11", 0, 0, 0, int64(units+2))
	if sum := tally(results); sum["201"] != units || sum["sold_out"] != 4*units {
		t.Errorf("answers: %v", sum)
	}
}

// One key from everywhere at once is one order, and every request gets its answer.
func TestOneKeyFromEverywhere(t *testing.T) {
	t.Parallel()
	s := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, r.Header.Get(token.Header))
	}}
	first, second, _ := twoEdges(t, site{shop: serve(t, s), gate: retries})
	first.sell("flash", `  - {sku: "7", stock: 10}`)
	second.untilSelling("flash")
	results := crowd(buyers(60, func(int) order { return one("a", "7", 1, "").under("k1") }),
		func(r result) bool { return r.reason == "duplicate" || r.reason == "pending" || r.reason == "busy" }, first, second)
	for _, r := range results {
		if r.status != 201 || r.body != results[0].body || r.reservation != results[0].reservation {
			t.Errorf("%v, another one is %v", r, results[0])
		}
	}
	if s.orders() != 1 {
		t.Errorf("the shop got %d orders", s.orders())
	}
	first.expect("flash", 9, 0, 0, 1)
}

// An edge that signs with another key than the others does not sell, and says why.
func TestEdgeWithAnotherKeyRefuses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := new(recorder)
	same := site{redis: redisAt(server.Addr()), shop: serve(t, s)}
	first := startEdge(t, same)
	first.sell("flash", `  - {sku: "7", stock: 10}`)
	second := startEdge(t, same) // a storage of its own
	eventually(t, "the log names the reason", func() bool { return second.log.has("other edges on this redis sign with another key") })
	r := second.buy(one("a", "7", 1, ""))
	if r.status != http.StatusServiceUnavailable || r.reason != "unavailable" {
		t.Errorf("the second edge: %v", r)
	}
	if n := s.orders(); n != 0 {
		t.Errorf("the shop got %d orders", n)
	}
	if r := first.buy(one("a", "7", 1, "")); r.status != http.StatusCreated {
		t.Errorf("the first edge: %v", r)
	}
}

// slowShop answers orders when it is told to.
type slowShop struct {
	*recorder
	working chan string
	answer  chan int
}

func newSlowShop(t *testing.T) slowShop {
	s := slowShop{new(recorder), make(chan string, 100), make(chan int)}
	s.recorder.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Stockgate-Token") != "" {
			s.working <- ""
			select {
			case status := <-s.answer:
				w.WriteHeader(status)
			case <-t.Context().Done(): // the test has failed before
				panic(http.ErrAbortHandler)
			}
		}
	}
	return s
}

// soonOver is a deadline that tests wait for. Until then much must be done, on any machine.
const soonOver = "hold_for 20s"

// A process that ends takes no resolution with it: neither when the servers wait for
// the attempt, nor when their grace period is over.
func TestShutdownKeepsResolutions(t *testing.T) {
	t.Parallel()
	redis := redisAt(redistest.Start(t).Addr())
	second := startEdge(t, site{redis: redis, shop: serve(t, new(recorder))}) // it sees what becomes of the holds
	for i, test := range []struct {
		name, global string
		waits        bool
	}{{"waiting", "", true}, {"grace period over", "grace_period 100ms", false}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSlowShop(t)
			first, id, sku := newEdge(t, ""), fmt.Sprint("flash-", i), fmt.Sprint(i)
			second := counter{second, id}.of(t)
			first.storage = second.storage
			first.start(site{redis: redis, shop: serve(t, s), global: test.global})
			first.sell(id, fmt.Sprintf(`  - {sku: %q, stock: 1}`, sku))
			second.untilSelling(id)
			done := first.goBuy(one("a", sku, 1, ""))
			await(t, "the shop has the order", s.working)
			hold := second.onlyHold(id)
			first.cmd.Process.Signal(syscall.SIGTERM)
			if test.waits {
				eventually(t, "the edge takes no more requests", func() bool {
					_, err := http.Get(first.url + "/browse")
					return err != nil
				})
				s.answer <- 201
				if r := await(t, "the buyer's answer", done); r.status != http.StatusCreated {
					t.Errorf("the buyer sees %v", r)
				}
			} else {
				eventually(t, "the servers wait no more", func() bool { return first.log.has("server graceful shutdown") })
				s.answer <- 201
			}
			await(t, "the process ends", first.gone)
			second.mustState(hold, "confirmed", "status_201")
		})
	}
}

// A reload does not touch an attempt that is at the shop: not when the new
// configuration talks to Redis in another way, nor when it has no gate any more.
func TestReloadKeepsResolutions(t *testing.T) {
	t.Parallel()
	redis := redisAt(redistest.Start(t).Addr())
	second := startEdge(t, site{redis: redis, shop: serve(t, new(recorder))}) // it sees what becomes of the holds
	for i, test := range []struct {
		name   string
		status int
		state  string
		change func(*edge, site)
	}{
		{"the same", 201, "confirmed", func(e *edge, s site) { s.outer = "header X-New 1"; e.mustReload(s) }},
		{"another timeout", 400, "released", func(e *edge, s site) { s.redis = strings.Replace(s.redis, "20s", "19s", 1); e.mustReload(s) }},
		{"no gate", 500, "in_doubt", func(e *edge, s site) {
			empty := fmt.Sprintf("{\n admin unix/%s\n storage file_system %s\n persist_config off\n}\nhttp://%s {\n respond ok\n}\n", e.admin, e.storage, e.addr)
			e.mustReloadText(empty)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSlowShop(t)
			first, same, id, sku := newEdge(t, ""), site{redis: redis, shop: serve(t, s)}, fmt.Sprint("flash-", i), fmt.Sprint(i)
			second := counter{second, id}.of(t)
			first.storage = second.storage
			first.start(same)
			first.sell(id, fmt.Sprintf(`  - {sku: %q, stock: 1}`, sku))
			second.untilSelling(id)
			done := first.goBuy(one("a", sku, 1, ""))
			await(t, "the shop has the order", s.working)
			test.change(first, same)
			s.answer <- test.status
			r := await(t, "the buyer's answer", done)
			if r.status != test.status {
				t.Errorf("the buyer sees %v", r)
			}
			second.untilState(r.reservation, test.state)
		})
	}
}

// Reloads in the middle of a stampede: every buyer gets a right answer, every
// outcome is told, nothing is left behind, and the metrics count on.
func TestReloadDuringAStampede(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := newEdge(t, "")
	e.buyers.Transport.(*http.Transport).DisableKeepAlives = true // a kept connection may end between two requests
	s, addr := startShop(t, e)
	at := func(timeout string) site {
		// Caddy leaves idle connections of old proxies to their timeout
		return site{redis: redisIn(server.Addr(), timeout), gate: roomy,
			backend: "reverse_proxy " + addr + " {\n transport http {\n  keepalive off\n  dial_timeout 1m\n }\n}"}
	}
	e.start(at("20s"))
	units := draw.Times(150, 300)
	e.sell("double11", fmt.Sprintf(`  - {sku: "20002001", stock: %d}`, units+1))
	if r := e.buy(one("first", "20002001", 1, "")); r.status != http.StatusCreated { // the shop fetches the keys, which a reload may interrupt
		t.Fatal(r)
	}
	if err := s.SetMisbehaviour("delay=30ms:0.5,delay-after=30ms:0.5"); err != nil {
		t.Fatal(err)
	}
	e.mustReload(at("19s"))
	e.untilSelling("double11")
	goroutines := e.goroutines("")

	done := make(chan []result, 1)
	go func() {
		done <- crowd(buyers(2*units, func(i int) order { return one(fmt.Sprintf("buyer-%d", i), "20002001", 1, "") }),
			func(r result) bool {
				// A new configuration has a listener of its own, and with the old one the kernel drops
				// connections that were not accepted yet. They carried nothing: had one been an order,
				// the buyers would have fewer than the shop.
				return comesBack(r) || r.err != nil
			}, e)
	}()
	for i := range draw.Times(4, 8) {
		timeout := "20s"
		if i%4 < 2 {
			timeout = "18s" // every other reload keeps the connection to Redis
		}
		e.mustReload(at(timeout))
	}
	results := <-done
	e.mustReload(at("19s"))

	if sum := tally(results); sum["201"] != units || sum["sold_out"] != units {
		t.Errorf("answers: %v", sum)
	}
	e.untilExpected("double11", 0, 0, 0, int64(units+1))
	audit(t, e, "double11", s, results)
	for id, n := range s.Counts().Tokens {
		if n != 1 {
			t.Errorf("token %s came %d times", id, n)
		}
	}
	if n := e.metric(`stockgate_attempts_total{outcome="confirmed",reason="",sale="double11"}`); n != float64(units+1) {
		t.Errorf("%v attempts are counted as confirmed", n)
	}
	eventually(t, "the metrics know the sale", func() bool {
		return strings.Contains(e.adminGet("/metrics"), `sale="double11",sku="20002001",state="confirmed"`)
	})
	eventuallyf(t, func() bool {
		e.buyers.CloseIdleConnections()
		e.control.CloseIdleConnections()
		return e.goroutines("") <= goroutines+5
	}, func() string {
		return fmt.Sprintf("%d goroutines, %d before:\n%s", e.goroutines(""), goroutines, e.adminGet("/debug/pprof/goroutine?debug=1"))
	})
}

// A reload that fails leaves the configuration before it selling.
func TestFailingReload(t *testing.T) {
	t.Parallel()
	taken := serve(t, new(recorder))
	server := redistest.Start(t)
	s := new(recorder)
	good := site{redis: redisAt(server.Addr()), shop: serve(t, s)}
	e := startEdge(t, good)
	e.sell("flash", `  - {sku: "7", stock: 10}`)
	for i, bad := range []func(*site){
		func(s *site) { s.gate = "hold_for 1s" },
		func(s *site) { s.gate = "nonsense" },
		func(s *site) { s.backend = "respond ok\n}\nhttp://" + taken + " {\n respond taken" },
		func(s *site) {
			s.redis = redisIn(server.Addr(), "7s")
			s.backend = "respond ok\n}\nhttp://" + taken + " {\n respond taken"
		},
		func(s *site) { s.app = "token {\n key hmac short\n}" },
	} {
		broken := good
		bad(&broken)
		if status, body := e.reload(broken); status == http.StatusOK {
			t.Errorf("broken configuration %d was taken: %s", i, body)
		}
		if r := e.buy(one(fmt.Sprintf("buyer-%d", i), "7", 1, "")); r.status != http.StatusCreated {
			t.Errorf("after broken configuration %d: %v", i, r)
		}
	}
	e.mustReload(good)
	e.expect("flash", 5, 0, 0, 5)
}

// The embedded server outlives a reload, as long as a configuration uses it.
func TestEmbeddedOutlivesReloads(t *testing.T) {
	t.Parallel()
	s := new(recorder)
	same := site{shop: serve(t, s)}
	e := startEdge(t, same)
	e.sell("flash", `  - {sku: "7", stock: 10}`)
	for i, timeout := range []string{"10s", "10s", "11s"} {
		same.redis = "embedded {\n timeout " + timeout + "\n}"
		e.mustReload(same)
		e.untilSelling("flash")
		if r := e.buy(one(fmt.Sprintf("buyer-%d", i), "7", 1, "")); r.status != http.StatusCreated {
			t.Errorf("after reload %d: %v", i, r)
		}
	}
	e.expect("flash", 7, 0, 0, 3)
}

// metric reads one series.
func (e *edge) metric(series string) float64 {
	e.t.Helper()
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(e.adminGet("/metrics"))
	if found == nil {
		e.t.Fatalf("there is no series %s", series)
	}
	n, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		e.t.Fatal(err)
	}
	return n
}
