package gate_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// testBreak is a handler that breaks requests off as the directive abort does, or panics by mistake.
type testBreak struct{ Mistake bool }

func (testBreak) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_break", New: func() caddy.Module { return new(testBreak) }}
}

func (b testBreak) ServeHTTP(http.ResponseWriter, *http.Request, caddyhttp.Handler) error {
	if b.Mistake {
		panic("a mistake")
	}
	panic(http.ErrAbortHandler)
}

func init() {
	caddy.RegisterModule(testBreak{})
	httpcaddyfile.RegisterHandlerDirective("test_break", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return testBreak{Mistake: h.Next() && h.NextArg()}, nil
	})
	httpcaddyfile.RegisterDirectiveOrder("test_break", httpcaddyfile.Before, "redir")
}

// The shop's answer to an order that is sent without its request breaks off: its status counts, as for
// any order, and the next one is sent.
func TestQueueAnswerBreaksOff(t *testing.T) {
	for status, state := range map[int]string{201: "confirmed", 422: "released", 500: "in_doubt"} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			working, done := make(chan string, 10), make(chan struct{})
			shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
				buyer := r.Header.Get("X-User-Id")
				working <- buyer
				<-done
				if buyer != "u1" {
					takesOrder(w, r)
					return
				}
				w.Header().Set("Content-Length", "100")
				w.WriteHeader(status)
				_, _ = w.Write([]byte(`{"paid":`))
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
			s := sitetest.OpenCaddyfile(t, queueSite(shop.Addr(), ""))
			first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), working)
			broken := s.Send(async("u1", "")).Header.Get("Location")
			next := s.Send(async("u2", "")).Header.Get("Location")
			done <- struct{}{}
			(<-first).Is(t, 201, "")
			<-working
			close(done)
			s.Eventually("an order that is "+state, func() (string, bool) {
				p := toldOf(t, getAt(s, broken))
				return fmt.Sprint(p), p.State == state
			})
			if state == "in_doubt" {
				return // it keeps its place at the shop
			}
			s.Eventually("the next answer", func() (string, bool) {
				got := getAt(s, next)
				return got.Body, got.Status == 201
			})
		})
	}
}

// A handler before the gate breaks off an order that is sent without its request, or panics: the order
// is tried three times, and released.
func TestQueueBrokenOffBeforeTheGate(t *testing.T) {
	for handler, panics := range map[string]int{"test_break": 0, "test_break mistake": 3} {
		t.Run(handler, func(t *testing.T) {
			shop := newSlowShop(t)
			site := queueSite(shop.Addr(), "")
			s := sitetest.OpenCaddyfile(t, site)
			first := s.BeginOrder(keyed("u0", "", `{"sku":"plain","quantity":1}`), shop.working)
			at := s.Send(async("u1", "")).Header.Get("Location")
			err := s.LoadCaddyfile(strings.Replace(site, "stockgate_guard", "stockgate_guard\n"+strings.Replace(handler, "break", "break @order", 1), 1))
			close(shop.done)
			if err != nil {
				t.Fatal(err)
			}
			(<-first).Is(t, 201, "")
			s.Eventually("an order that is released", func() (string, bool) { p := toldOf(t, getAt(s, at)); return fmt.Sprint(p), p.State == "released" })
			if n := len(s.Logged("a handler has panicked on an order that is sent without its request: report this to those who made the handler")); n != panics {
				t.Errorf("%d panics are logged", n)
			}
			if got := shop.Take(); len(got) != 1 {
				t.Errorf("the shop got %+v", got)
			}
		})
	}
}
