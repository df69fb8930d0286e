package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/test/redistest"
)

// oracle is a shop that fails every order, and answers the probe with a status.
type oracle struct {
	status atomic.Int32
	mu     sync.Mutex
	asked  []seen
}

func (o *oracle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	o.mu.Lock()
	o.asked = append(o.asked, seen{method: r.Method, uri: r.RequestURI, header: r.Header.Clone()})
	o.mu.Unlock()
	w.WriteHeader(int(o.status.Load()))
}

// questions are those that have come so far.
func (o *oracle) questions() []seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]seen(nil), o.asked...)
}

// The shop's yes confirms at once; its no releases, only after the deadline and when it
// is said twice; what is neither is asked again. The stock, the metrics and the log
// tell of it.
func TestProbeResolves(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, gate string
		status     int
		state      string
	}{
		{"yes", "", 200, "confirmed"},
		{"no", "", 404, "released"},
		{"yes in other words", "confirm 302", 302, "confirmed"},
		{"no in other words", "release 4xx", 410, "released"},
	}
	counters, shops, addrs, sites := newCounters(t, len(tests)), make([]oracle, len(tests)), make([]string, len(tests)), make([]site, len(tests))
	counters[0].env = []string{"SHOP_KEY=s3cret"}
	for i, test := range tests {
		shops[i].status.Store(503)
		addrs[i] = serve(t, &shops[i])
		sites[i] = site{global: "metrics", name: counters[i].sale, shop: addrs[i], gate: soonOver + "\nin_doubt probe http://" + addrs[i] + "/orders?no={id} {\n" + test.gate +
			"\nevery 500ms\nlongest 1s\ntimeout 500ms\ntries 1000\nheader Authorization \"Bearer {env.SHOP_KEY}\"\n}"}
	}
	open(counters, sites)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, e := &shops[i], counters[i].of(t)
			e.sell(e.sale, oneUnit)
			r := e.buy(one("a", "7", 1, ""))
			e.mustState(r.reservation, "in_doubt", "status_500")
			eventually(t, "the shop was asked", func() bool { return len(s.questions()) > 1 })
			if q := s.questions()[0]; q.method != "GET" || q.uri != "/orders?no="+r.reservation || q.header.Get("Authorization") != "Bearer s3cret" {
				t.Errorf("%+v", q)
			}
			e.mustState(r.reservation, "in_doubt", "status_500")
			s.status.Store(int32(test.status))
			e.untilState(r.reservation, test.state)
			e.mustState(r.reservation, test.state, fmt.Sprintf("probe_status_%d", test.status))
			var rec struct{ Changed, Deadline time.Time }
			e.must("GET", "reservations/"+r.reservation, "", &rec)
			word := "present"
			if test.state == "released" {
				word = "absent"
				if rec.Changed.Before(rec.Deadline) {
					t.Errorf("released at %v, the shop may sell until %v", rec.Changed, rec.Deadline)
				}
				e.expect(e.sale, 1, 0, 0, 0)
			} else {
				e.expect(e.sale, 0, 0, 0, 1)
			}
			for _, verdict := range []string{"unknown", word} {
				series := fmt.Sprintf(`stockgate_probes_total{sale=%q,verdict=%q}`, e.sale, verdict)
				eventually(t, "the metric "+series, func() bool { return strings.Contains(e.adminGet("/metrics"), series) })
			}
			for message, of := range map[string]string{"no longer in doubt": r.reservation, "the probe gets no answer": addrs[i]} {
				eventually(t, "the log says: "+message, func() bool { return e.log.hasLine(message, of) })
			}
			if e.log.has("s3cret") {
				t.Error("the log tells too much")
			}
		})
	}
}

// A shop that knows its orders by their own names is asked by them, and never about a
// hold that has none, or one with which a buyer could choose the route that is asked.
func TestProbeByRef(t *testing.T) {
	t.Parallel()
	s := new(oracle)
	s.status.Store(200)
	addr := serve(t, s)
	e := startEdge(t, site{global: "metrics", shop: addr, source: sources + "\nref {header.X-Cart}",
		gate: "in_doubt probe http://" + addr + "/api/orders/{ref} {\nevery 500ms\nlongest 1s\ntimeout 500ms\ntries 1000\n}"})
	e.sell("flash", `  - {sku: "7", stock: 3}`)
	with := func(buyer, ref string) string {
		o := one(buyer, "7", 1, "")
		if ref != "" {
			o.header = http.Header{"X-Cart": {ref}}
		}
		r := e.buy(o)
		return r.reservation
	}
	without := with("a", "")
	sly := with("b", "../../health")
	known := with("c", "C-17")
	e.untilState(known, "confirmed")
	eventually(t, "the others were not asked about", func() bool {
		return strings.Contains(e.adminGet("/metrics"), `stockgate_probes_total{sale="flash",verdict="not_asked"}`)
	})
	for _, id := range []string{without, sly} {
		e.mustState(id, "in_doubt", "status_500")
	}
	for _, q := range s.questions() {
		if q.uri != "/api/orders/C-17" {
			t.Errorf("asked for %s", q.uri)
		}
	}
}

// Two edges, each in several configurations: Redis gives every question to one of them,
// and one that is stopped asks no more.
func TestProbesAreSharedAndEnd(t *testing.T) {
	t.Parallel()
	s := new(oracle)
	s.status.Store(503)
	addr := serve(t, s)
	server := redistest.Start(t)
	first, second := newEdge(t, ""), newEdge(t, "")
	second.storage = first.storage
	same := site{redis: redisAt(server.Addr()), shop: addr,
		gate: "in_doubt probe http://" + addr + "/orders/{id} {\nevery 500ms\nlongest 1s\ntimeout 500ms\ntries 1000\n}"}
	edges := []*edge{first, second}
	for _, e := range edges {
		e.start(same)
	}
	first.sell("flash", oneUnit)
	second.untilSelling("flash")
	r := first.buy(one("a", "7", 1, ""))
	first.mustState(r.reservation, "in_doubt", "status_500")
	for i := range 5 {
		asked := len(s.questions())
		eventually(t, "the shop is asked on", func() bool { return len(s.questions()) > asked })
		for _, e := range edges {
			changed := same
			changed.outer = fmt.Sprintf("header X-Reload %d", i)
			e.mustReload(changed)
		}
	}
	const running = "probe.(*prober).run"
	for _, e := range edges {
		eventually(t, "one prober is left", func() bool { return e.goroutines(running) == 1 })
	}
	s.status.Store(200)
	first.untilState(r.reservation, "confirmed")
	var rec struct{ Probes int }
	first.must("GET", "reservations/"+r.reservation, "", &rec)
	if asked := len(s.questions()); rec.Probes < asked || asked < 5 {
		t.Errorf("%d questions, %d of them given out", asked, rec.Probes)
	}
	for _, e := range edges {
		without := same
		without.gate = "in_doubt keep"
		e.mustReload(without)
		eventually(t, "no prober is left", func() bool { return e.goroutines(running) == 0 })
	}
}

// While Redis is down nothing is asked, and no wrong answer is given; when it is back,
// the doubt ends.
func TestProbeWithoutRedis(t *testing.T) {
	t.Parallel()
	s := new(oracle)
	s.status.Store(503)
	addr := serve(t, s)
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	e := startEdge(t, site{global: "metrics", redis: redisAt(proxy.Addr()), shop: addr,
		gate: "hold_for 1m\nin_doubt probe http://" + addr + "/orders/{id} {\nevery 500ms\nlongest 500ms\ntimeout 500ms\ntries 1000\n}"})
	e.sell("flash", oneUnit)
	r := e.buy(one("a", "7", 1, ""))
	e.mustState(r.reservation, "in_doubt", "")
	eventually(t, "the shop is asked", func() bool { return len(s.questions()) > 0 })
	proxy.DropAll()
	s.status.Store(200)
	eventually(t, "the prober hears that redis is away", func() bool {
		return strings.Contains(e.adminGet("/metrics"), `stockgate_redis_errors_total{during="probe"}`) &&
			!strings.Contains(e.adminGet("/metrics"), `stockgate_redis_errors_total{during="probe"} 0`)
	})
	proxy.Heal()
	eventually(t, "the edge hears redis again", func() bool { status, _ := e.askAdmin("GET", "sales/flash", "", nil); return status == 200 })
	e.untilState(r.reservation, "confirmed")
	e.expect("flash", 0, 0, 0, 1)
}

// Two gates of one name must ask alike: the configuration is refused, and says why.
func TestGatesThatAskDifferentlyNeedNames(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "")
	one := site{shop: "127.0.0.1:1", gate: "in_doubt probe http://127.0.0.1:1/{id}"}
	e.start(one)
	two := one
	two.outer = "route /other {\nstockgate {\n" + sources + "\n}\n}"
	if status, body := e.reload(two); status == http.StatusOK || !strings.Contains(body, "two gates without a name differ") {
		t.Errorf("%d %s", status, body)
	}
	two.outer = "route /other {\nstockgate other {\n" + sources + "\n}\n}"
	e.mustReload(two)
}
