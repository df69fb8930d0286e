package gate_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// queueLine is the key prefix of the test's sale.
const queueLine = "stockgate:{double11.0}:"

// reload gives the site another configuration.
func reload(s *sitetest.Site, config string) {
	s.T.Helper()
	if err := s.LoadCaddyfile(config); err != nil {
		s.T.Fatal(err)
	}
}

// waitsAsync has an order wait without its request, and returns its place.
func waitsAsync(s *sitetest.Site, buyer string, headers ...string) (at string) {
	s.T.Helper()
	r := async(buyer, "")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a := s.Send(r)
	if a.Status != 202 {
		s.T.Fatalf("%s does not wait: %d %s", buyer, a.Status, a.Body)
	}
	return a.Header.Get("Location")
}

// queueShown is what an operator sees of the line.
func queueShown(s *sitetest.Site) adminapi.QueueState {
	s.T.Helper()
	return sitetest.Do[adminapi.QueueState](s, "GET", "/stockgate/sales/double11/queue", "")
}

// A reload changes an option of the gate while orders wait: the new configuration sends them, in their
// order, be their requests open or not, and those of an edge that is gone and had another configuration.
func TestQueueReloadOfAnyOption(t *testing.T) {
	shop := newSlowShop(t)
	base := queueSite(shop.Addr(), "")
	s := sitetest.OpenCaddyfile(t, base)
	last := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	var open chan sitetest.Answer
	for i, c := range []struct{ old, new string }{
		{"at_once 1", "at_once 1\n pace 1000 1s"},
		{"wait 5m", "wait 4m"},
		{"hold_for 10m", "hold_for 9m"},
		{"queue {", "rate {client_ip} 1000 1s\n queue {"},
		{"wait 5m", "wait 5m\n longest 9m"},
		{"wait 5m", "wait 5m\n keep 16m\n most 50"},
		{"queue {", "identity ip {client_ip}\n max_body 32KiB\n queue {"},
		{"buyer {header.X-User-Id}", "buyer {header.X-Another} {header.X-User-Id}"},
		{"queue {", "confirm 201\n queue {"},
	} {
		buyer := fmt.Sprint("u", i+1)
		if i%3 == 2 {
			done, r := make(chan sitetest.Answer, 1), keyed(buyer, "", `{"sku":"plain","quantity":1}`)
			go func() { done <- s.Send(r) }()
			untilWaiting(s, 1)
			open = done
		} else {
			waitsAsync(s, buyer)
			open = nil
		}
		if i%3 == 1 {
			ofAnotherEdge(s)
		}
		if !strings.Contains(base, c.old) {
			t.Fatalf("the site has no %q", c.old)
		}
		reload(s, strings.Replace(base, c.old, c.new, 1))
		shop.done <- struct{}{}
		if last != nil {
			(<-last).Is(t, 201, "")
		}
		select {
		case got := <-shop.working:
			if got != buyer {
				t.Fatalf("after %q the shop works on the order of %s, want %s", c.new, got, buyer)
			}
		case <-stocktest.Soon(t).Done():
			t.Fatalf("after %q the order of %s waits on: %+v", c.new, buyer, queueShown(s))
		}
		last = open
	}
	shop.done <- struct{}{}
	if last != nil {
		(<-last).Is(t, 201, "")
	}
	s.Eventually("all orders", func() (string, bool) { got := s.StockOf("plain"); return got, got == "100 90 0 0 10" })
}

// ofAnotherEdge has the order that waits belong to an edge that has stopped.
func ofAnotherEdge(s *sitetest.Site) {
	s.T.Helper()
	c, ctx := redisOf(s), s.T.Context()
	id := c.ZRange(ctx, queueLine+"line", 0, 0).Val()[0]
	words := strings.Fields(c.HGet(ctx, queueLine+"orders", id).Val()) // see lua/queue.lua
	words[0] = "stopped"
	if err := c.HSet(ctx, queueLine+"orders", id, strings.Join(words, " ")).Err(); err != nil {
		s.T.Fatal(err)
	}
}

// A reload changes the outcome: an order that waits is judged by the outcome with which it was made.
func TestQueueReloadOfTheOutcome(t *testing.T) {
	for mode, want := range map[string]string{"response": "100 98 0 0 2", "backend": "100 98 2 0 0"} {
		t.Run(mode, func(t *testing.T) {
			shop := newSlowShop(t)
			config := map[string]string{"response": queueSite(shop.Addr(), "")}
			config["backend"] = strings.Replace(config["response"], "queue {", "outcome backend\n queue {", 1)
			other := map[string]string{"response": "backend", "backend": "response"}[mode]
			s := sitetest.OpenCaddyfile(t, config[mode])
			first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
			at := waitsAsync(s, "u1")
			reload(s, config[other])
			shop.done <- struct{}{}
			(<-first).Is(t, 201, "")
			if got := <-shop.working; got != "u1" {
				t.Fatalf("the shop works on the order of %s", got)
			}
			shop.done <- struct{}{}
			s.Eventually("the shop's answer", func() (string, bool) { got := getAt(s, at); return got.Body, got.Status == 201 })
			if got := s.StockOf("plain"); got != want {
				t.Errorf("the cell is %s, want %s", got, want)
			}
		})
	}
}

// After a reload the gate reads another buyer in the request of an order that waits: it is not sent with
// this configuration. It is counted and said everywhere, stops nothing behind it, and is sent when its
// configuration is back. A gate of another name is another gate.
func TestQueueReloadThatCannotSend(t *testing.T) {
	for name, c := range map[string]struct{ old, new, log string }{
		"another buyer": {"buyer {header.X-User-Id}", "buyer {header.X-Another}", "this gate reads an order that waits in another way than the configuration that held its stock: the order is not sent with this configuration; start an edge with the one of then, or release it with 'caddy stockgate queue drain'"},
		"another gate": {"stockgate @order main", "stockgate @order other",
			"no gate of any edge can send orders that wait for the shop, and they are skipped: start an edge, or load a configuration, that has their gate (the same name, hosts and sale, and reads the same order), or release them with 'caddy stockgate queue drain'; 'caddy stockgate queue show' counts them"},
	} {
		t.Run(name, func(t *testing.T) {
			shop := newSlowShop(t)
			base := queueSite(shop.Addr(), "")
			s := sitetest.OpenCaddyfile(t, base)
			first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
			at := waitsAsync(s, "u1", "X-Another", "mallory")
			reload(s, strings.Replace(base, c.old, c.new, 1))
			waitsAsync(s, "u2", "X-Another", "u2")
			shop.done <- struct{}{}
			(<-first).Is(t, 201, "")
			if got := <-shop.working; got != "u2" {
				t.Fatalf("the shop works on the order of %s, want that of u2", got)
			}
			s.Eventually("an order that is skipped", func() (string, bool) {
				q := queueShown(s)
				return fmt.Sprintf("%+v", q), q.Skipped == 1 && q.Waiting == 1
			})
			if len(s.Logged(c.log)) == 0 {
				t.Errorf("the log does not say it")
			}
			if got := s.Admin("GET", "/stockgate/doctor", "").Body; !strings.Contains(got, "1 orders of double11 that wait for the shop are skipped: no gate of an edge that runs (") {
				t.Errorf("the doctor does not say it: %s", got)
			}
			if p := getAt(s, at); !strings.Contains(p.Body, `"still":true`) {
				t.Errorf("its buyer hears %s", p.Body)
			}
			s.UntilScraped(map[string]string{`stockgate_queue_skipped{sale="double11"}`: "1"})
			for command, want := range map[string]string{"queue": "\nskipped      1\n", "sale": "1 order skipped, because no edge that runs has their gate"} {
				if got := s.OK(command, "show", "double11"); !strings.Contains(got, want) {
					t.Errorf("%s show does not say it: %s", command, got)
				}
			}
			reload(s, base)
			shop.done <- struct{}{}
			if got := <-shop.working; got != "u1" {
				t.Fatalf("with its configuration the shop works on the order of %s", got)
			}
			shop.done <- struct{}{}
			s.Eventually("the answer", func() (string, bool) { a := getAt(s, at); return a.Body, a.Status == 201 })
			if q := queueShown(s); q.Skipped != 0 || q.Waiting != 0 {
				t.Errorf("in the end the line is %+v", q)
			}
		})
	}
}

// The gates of two sites are two gates, although their names are the same: an order waits for that of its
// own site.
func TestQueueOfAnotherSite(t *testing.T) {
	shop := newSlowShop(t)
	gate := queueSite(shop.Addr(), "")
	s := sitetest.OpenCaddyfile(t, gate)
	load := func(sites ...string) {
		t.Helper()
		if err := s.LoadSites("", sites...); err != nil {
			t.Fatal(err)
		}
	}
	load("respond 204", gate)
	at := func(buyer string) *http.Request {
		r := async(buyer, "")
		r.Host = "elsewhere"
		return r
	}
	first := s.BeginOrder(at("u0"), shop.working)
	place := s.Send(at("u1")).Header.Get("Location")
	load(gate, "respond 204")
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	s.Eventually("an order that is skipped", func() (string, bool) {
		q := queueShown(s)
		return fmt.Sprintf("%+v", q), q.Skipped == 1
	})
	load(gate, gate)
	if got := <-shop.working; got != "u1" {
		t.Fatalf("the shop works on the order of %s", got)
	}
	shop.done <- struct{}{}
	s.Eventually("the answer", func() (string, bool) { a := getAt(s, place); return a.Body, a.Status == 201 })
}
