package gate_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// testDial is a handler that leaves behind what reads the variables of the request, as a dial of reverse_proxy does
// that goes on in the background when the request has another connection, or its client has left.
type testDial struct{}

// dials are under way. Nothing orders what they read before or after what the handlers around do.
var dials sync.WaitGroup

func (testDial) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_dial", New: func() caddy.Module { return new(testDial) }}
}

func (testDial) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	caddyhttp.SetVar(r.Context(), "dialing", r.URL.Path) // as reverse_proxy before each attempt
	defer dials.Go(func() { caddyhttp.GetVar(r.Context(), "dialing") })
	switch {
	case r.Header.Get("X-Fails") != "":
		return errors.New("the dial has failed")
	case r.Header.Get("X-Answers") != "":
		w.WriteHeader(http.StatusCreated)
		return nil
	}
	return next.ServeHTTP(w, r)
}

func init() {
	caddy.RegisterModule(testDial{})
	httpcaddyfile.RegisterHandlerDirective("test_dial", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) { return testDial{}, nil })
	httpcaddyfile.RegisterDirectiveOrder("test_dial", httpcaddyfile.Before, "respond")
}

// The race detector finds a handler that changes the map of variables when the request has been at the shop: a dial
// that goes on in the background reads it, and the process would end.
func TestVariablesAreLeftToDials(t *testing.T) {
	var later atomic.Bool // the shop wants the next order later
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, _ *http.Request) {
		if later.Swap(false) {
			w.Header().Set("X-Later", "yes")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	orders := func(more string) string {
		return strings.Replace(queueSite(shop.Addr(), "again @later"), "queue {", "@later {\n header X-Later yes\n }\n "+more+"\n queue {", 1)
	}
	check := "stockgate_check /cart* turns {\n one_at_a_time {header.X-User-Id}\n }\n"
	sites := map[string]string{"a gate": orders("one_at_a_time {header.X-User-Id}"), "a check": check + orders("")}
	for name, site := range sites {
		t.Run(name, func(t *testing.T) {
			s := sitetest.OpenCaddyfile(t, strings.Replace(site, "reverse_proxy", "test_dial\nreverse_proxy", 1))
			for _, header := range []string{"X-Answers", "X-Fails", ""} {
				later.Store(true)
				r := keyed("u"+header, "", `{"sku":"plain","quantity":1}`)
				if name == "a check" {
					r.URL.Path = "/cart"
				}
				if header != "" {
					r.Header.Set(header, "yes")
				}
				a := s.Send(r)
				dials.Wait()
				if want := map[string]int{"X-Answers": http.StatusCreated, "": http.StatusCreated}[header]; want != 0 && name != "a check" && a.Status != want {
					t.Errorf("%s: %d %s", header, a.Status, a.Body)
				}
			}
		})
	}
}
