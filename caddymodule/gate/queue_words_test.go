package gate_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// untilWaiting waits until so many orders wait.
func untilWaiting(s *sitetest.Site, n int) {
	s.T.Helper()
	s.Eventually("orders that wait", func() (string, bool) { got := waitingAt(s); return fmt.Sprint(got), got == n })
}

// A client that has closed only its own side of the connection hears the truth: with a key its
// order goes on, without one there is no order.
func TestQueueHalfClosed(t *testing.T) {
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	a := <-halfClosed(s, "u1", "")
	a.Is(t, 503, "unavailable")
	untilWaiting(s, 0)
	a = <-halfClosed(s, "u2", "k2")
	if a.Status != 202 || a.Header.Get("Stockgate-Queue") != "waiting" {
		t.Fatalf("its order waits, and it hears %d %s", a.Status, a.Body)
	}
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	if buyer := <-shop.working; buyer != "u2" {
		t.Errorf("the shop works on the order of %s", buyer)
	}
	shop.done <- struct{}{}
	s.Eventually("the answer", func() (string, bool) {
		got := getAt(s, a.Header.Get("Location"))
		return got.Body, got.Status == 201
	})
}

// halfClosed closes its side when the order waits.
func halfClosed(s *sitetest.Site, buyer, key string) chan sitetest.Answer {
	s.T.Helper()
	c, err := net.Dial("unix", s.Socket("http"))
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = c.Close() })
	const body = `{"sku":"plain","quantity":1}`
	if key != "" {
		key = "Idempotency-Key: " + key + "\r\n"
	}
	if _, err := fmt.Fprintf(c, "POST /api/order HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nX-User-Id: %s\r\n%sContent-Length: %d\r\n\r\n%s", buyer, key, len(body), body); err != nil {
		s.T.Fatal(err)
	}
	untilWaiting(s, 1)
	if err := c.(*net.UnixConn).CloseWrite(); err != nil {
		s.T.Fatal(err)
	}
	done := make(chan sitetest.Answer, 1)
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			done <- sitetest.Answer{Body: err.Error()}
			return
		}
		text, _ := io.ReadAll(resp.Body)
		done <- sitetest.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(text)}
	}()
	return done
}

// With outcome backend a buyer's place has the shop's answer, the page at which to pay, before the
// order is paid.
func TestQueueBackendAnswers(t *testing.T) {
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, strings.Replace(queueSite(shop.Addr(), ""), "queue {", "outcome backend\n queue {", 1))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	at := s.Send(async("u1", "")).Header.Get("Location")
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	if buyer := <-shop.working; buyer != "u1" {
		t.Fatalf("the shop works on the order of %s", buyer)
	}
	if p := toldOf(t, getAt(s, at)); p.State != "at_shop" {
		t.Errorf("while the shop works on it: %+v", p)
	}
	shop.done <- struct{}{}
	s.Eventually("the shop's answer", func() (string, bool) {
		got := getAt(s, at)
		return got.Body, got.Status == 201 && got.Body == paid
	})
	if got, want := s.StockOf("plain"), "100 98 2 0 0"; got != want {
		t.Errorf("the cell is %s, want %s", got, want)
	}
}

// Another edge has sent an order whose request is open here, and the shop has refused it: the
// client does not hear that it was not sent.
func TestQueueSentElsewhere(t *testing.T) {
	sitetest.SetTime(t, timing.Turn, 100*time.Millisecond)
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	open := make(chan sitetest.Answer, 1)
	go func() { open <- s.Send(keyed("u1", "k1", `{"sku":"plain","quantity":1}`)) }()
	untilWaiting(s, 1)
	c, ctx := redisOf(s), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const key = "stockgate:{double11.0}:"
	id := c.ZRange(ctx, key+"line", 0, 0).Val()[0]
	words := strings.Fields(c.HGet(ctx, key+"orders", id).Val()) // see lua/queue.lua
	words[1], words[6] = "1", "other"
	must(c.ZRem(ctx, key+"line", id).Err())
	must(c.HSet(ctx, key+"orders", id, strings.Join(words, " ")).Err())
	store, err := reservation.Open(shard.Options{Addresses: []string{s.Redis}, Timeout: 20 * time.Second})
	must(err)
	t.Cleanup(func() { _ = store.Close() })
	for _, op := range []shard.Operation{
		shard.Op(lua.Send, id, "other", 1, "response", time.Hour.Milliseconds(), time.Minute.Milliseconds()),
		shard.Op(lua.Release, id, "shop", 0, "status_422"),
	} {
		if r, _, err := store.Do(ctx, "double11", op); err != nil || r.Code() != "ok" {
			t.Fatalf("%s: %v, %v", op.Name, r, err)
		}
	}
	if a := <-open; a.Status != 202 || toldOf(t, a).State != "released" {
		t.Errorf("the shop has refused the order, and its client hears %d %s %v", a.Status, a.Body, a.Header)
	}
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
}

// What stands before the gate fails for a moment when orders are sent without their requests:
// none is given up.
func TestQueueFailureBeforeTheGate(t *testing.T) {
	shop := newSlowShop(t)
	var mu sync.Mutex
	outage, failed := false, false
	door := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if outage && !failed {
			failed = true
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	s := sitetest.OpenCaddyfile(t, "forward_auth "+door.Addr()+" {\n uri /\n }\n"+queueSite(shop.Addr(), ""))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	at := s.Send(async("u1", "")).Header.Get("Location")
	mu.Lock()
	outage = true
	mu.Unlock()
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	if buyer := <-shop.working; buyer != "u1" {
		t.Fatalf("the shop works on the order of %s", buyer)
	}
	shop.done <- struct{}{}
	s.Eventually("the answer", func() (string, bool) { got := getAt(s, at); return got.Body, got.Status == 201 })
	mu.Lock()
	defer mu.Unlock()
	if !failed {
		t.Error("nothing failed: the test shows nothing")
	}
}

// The routes of a site change while an order waits, and it does not pass its gate any more: it does
// not reach the shop without a token, and is released. So it is for orders by GET.
func TestQueueRouteMoved(t *testing.T) {
	for _, method := range []string{"POST", "GET"} {
		t.Run(method, func(t *testing.T) {
			shop := newSlowShop(t)
			site := queueSite(shop.Addr(), "")
			if method == "GET" {
				site = strings.NewReplacer("method POST", "method GET", "{json.", "{query.").Replace(site)
			}
			s := sitetest.OpenCaddyfile(t, site)
			by := func(r *http.Request) *http.Request {
				r.Method = method
				if method == "GET" {
					r.URL.RawQuery, r.Body, r.ContentLength = "sku=plain&quantity=1", http.NoBody, 0
				}
				return r
			}
			first := s.BeginOrder(by(keyed("u0", "", `{"sku":"plain","quantity":1}`)), shop.working)
			at := s.Send(by(async("u1", ""))).Header.Get("Location")
			if err := s.LoadCaddyfile(strings.Replace(site, "/api/order", "/api/moved", 1)); err != nil {
				t.Fatal(err)
			}
			shop.done <- struct{}{}
			(<-first).Is(t, 201, "")
			s.Eventually("an order that is released", func() (string, bool) {
				p := toldOf(t, getAt(s, at))
				n := len(shop.working)
				return fmt.Sprint(p, n), p.State == "released" || n > 0
			})
			if got := shop.Take(); len(got) != 1 {
				t.Errorf("the shop got %+v", got)
			}
			close(shop.done)
		})
	}
}

// An order by GET that is sent without its request asks a login first, as its own request did.
func TestQueueGetBehindALogin(t *testing.T) {
	shop, login := newSlowShop(t), sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	site := strings.NewReplacer("method POST", "method GET", "{json.", "{query.").Replace(queueSite(shop.Addr(), ""))
	s := sitetest.OpenCaddyfile(t, "forward_auth "+login.Addr()+" {\n uri /\n }\n"+site)
	get := func(buyer string) *http.Request {
		r := async(buyer, "")
		r.Method, r.URL.RawQuery, r.Body, r.ContentLength = "GET", "sku=plain&quantity=1", http.NoBody, 0
		return r
	}
	first := s.BeginOrder(get("u0"), shop.working)
	at := s.Send(get("u1")).Header.Get("Location")
	asked := len(login.Take())
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	if buyer := <-shop.working; buyer != "u1" {
		t.Fatalf("the shop works on the order of %s", buyer)
	}
	if n := len(login.Take()); asked != 2 || n != 1 { // before the place is asked, which asks the login too
		t.Errorf("the login was asked %d times by requests, and %d times by the order", asked, n)
	}
	shop.done <- struct{}{}
	s.Eventually("the answer", func() (string, bool) { got := getAt(s, at); return got.Body, got.Status == 201 })
}

// Four clients may wait for news of an order. Another one is told at once what is known, and when to ask
// again; all hear the answer.
func TestQueueManyPolls(t *testing.T) {
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	at := s.Send(async("u1", "")).Header.Get("Location")
	poll := func(wait string) sitetest.Answer {
		r, err := http.NewRequest("GET", "http://127.0.0.1"+at, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Prefer", "wait="+wait)
		return s.Send(r)
	}
	polls := make(chan sitetest.Answer, 4)
	for range 4 {
		go func() {
			a := poll("30")
			for a.Header.Get("Preference-Applied") == "" || a.Status == 200 { // the one below has its place, or 30 s are over
				a = poll("30")
			}
			polls <- a
		}()
	}
	s.Eventually("a client that does not wait", func() (string, bool) {
		a := poll("1")
		if a.Status != 200 || toldOf(t, a).State != "waiting" || a.Header.Get("Retry-After") == "" {
			t.Fatalf("it hears %d %v %s", a.Status, a.Header, a.Body)
		}
		return fmt.Sprint(a.Header), a.Header.Get("Preference-Applied") == ""
	})
	shop.done <- struct{}{}
	(<-first).Is(t, 201, "")
	<-shop.working
	shop.done <- struct{}{}
	for range 4 {
		if a := <-polls; a.Status != 201 || a.Header.Get("Preference-Applied") != "wait=30" {
			t.Errorf("a client that waited hears %d %v %s", a.Status, a.Header, a.Body)
		}
	}
}

// An edge that has not reached Redis yet does not tell a buyer that there is no such order.
func TestQueuePlaceAtANewEdge(t *testing.T) {
	shop := newSlowShop(t)
	s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
	first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
	at := s.Send(async("u1", "")).Header.Get("Location")
	close(shop.done)
	(<-first).Is(t, 201, "")
	s.Eventually("the answer", func() (string, bool) { got := getAt(s, at); return got.Body, got.Status == 201 })
	s.Redis = "127.0.0.1:1"
	if err := s.LoadCaddyfile(queueSite(shop.Addr(), "")); err != nil {
		t.Fatal(err)
	}
	if a := getAt(s, at); a.Status != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("without Redis: %d %s", a.Status, a.Body)
	}
}
