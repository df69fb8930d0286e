package resolve_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// The same event many times at once sells once.
func TestWebhooksAtOnce(t *testing.T) {
	h := openHooks(t, stripeSite)
	other := h.edge("other", h.server.Addr())
	h.hold("r1", "SO-1", "b", "few", 2, record.ModeBackend, time.Hour)
	h.expired("r2", "SO-2", "few", 1)
	var crowd sync.WaitGroup
	var failed atomic.Int32
	for i := range 40 {
		crowd.Go(func() {
			client := []*http.Client{h.Client(), other.client}[i%2]
			resp, err := client.Do(signed(paidFor([]string{"SO-1", "SO-2"}[i/2%2]), hookSecret, time.Now()))
			if err != nil || resp.StatusCode != 200 {
				failed.Add(1)
				t.Errorf("%v %v", resp, err)
				return
			}
			resp.Body.Close()
		})
	}
	crowd.Wait()
	if got := h.StockOf("few"); failed.Load() > 0 || got != "3 0 0 0 3" || h.state("r1") != "confirmed" || h.state("r2") != "confirmed" {
		t.Errorf("%d failed, stock %s, %s %s", failed.Load(), got, h.state("r1"), h.state("r2"))
	}
	if n := h.took(); n != 40 {
		t.Errorf("the shop got %d of 40", n)
	}
}

// An edge that is killed at any step leaves the hold with its units, and the next delivery
// settles it, at another edge.
func TestWebhookAndAKilledEdge(t *testing.T) {
	server, app := sitetest.Redis(t)
	h := openHooksAt(t, server, server.Addr(), app, stripeSite)
	for i, step := range []string{"extend", "forward", "confirm"} {
		proxy := redistest.NewProxy(t, server.Addr())
		e := h.edge("edge-"+step, proxy.Addr())
		id, ref := fmt.Sprint("r", i), fmt.Sprint("SO-", i)
		h.hold(id, ref, "b", "plain", 1, record.ModeBackend, time.Hour)
		reached, let := make(chan struct{}, 1), make(chan struct{})
		h.shopSays(func(w http.ResponseWriter, _ *http.Request) {
			switch step {
			case "forward":
				reached <- struct{}{}
				<-let
			case "confirm":
				proxy.HoldRequests("EVALSHA", "EVAL", "FCALL")
			}
			fmt.Fprint(w, "[accepted]")
		})
		if step == "extend" {
			proxy.HoldRequests("EVALSHA", "EVAL", "FCALL")
		}
		gone := make(chan error, 1)
		go func() {
			resp, err := e.client.Do(signed(paidFor(ref), hookSecret, time.Now()))
			if err == nil {
				resp.Body.Close()
				err = fmt.Errorf("it was answered %s", resp.Status)
			} else {
				err = nil
			}
			gone <- err
		}()
		if step == "forward" {
			<-reached
		} else if err := proxy.WaitHeld(t.Context()); err != nil {
			t.Fatal(err)
		}
		if step == "confirm" { // a heartbeat may have been held first
			h.Eventually("at the shop", func() (string, bool) {
				h.shop.Mu.Lock()
				defer h.shop.Mu.Unlock()
				return fmt.Sprint(len(h.shop.Got)), len(h.shop.Got) == 1
			})
		}
		if err := e.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		close(let)
		if err := <-gone; err != nil {
			t.Errorf("killed at %s: %v", step, err)
		}
		if h.state(id) != "held" {
			t.Errorf("killed at %s, the hold is %s", step, h.state(id))
		}
		h.answers.Store(nil)
		h.deliver(paidFor(ref), 200, "[accepted]")
		if got, want := h.StockOf("plain"), fmt.Sprint("100 ", 99-i, " 0 0 ", 1+i); h.state(id) != "confirmed" || got != want {
			t.Errorf("killed at %s: %s, stock %s, want %s", step, h.state(id), got, want)
		}
		h.took()
	}
}

// A reload while the shop has the webhook changes nothing of how it ends.
func TestWebhookAndAReload(t *testing.T) {
	h := openHooks(t, stripeSite)
	h.hold("r1", "SO-1", "b", "plain", 1, record.ModeBackend, time.Hour)
	working, let := make(chan string, 1), make(chan struct{})
	h.shopSays(func(w http.ResponseWriter, _ *http.Request) {
		working <- ""
		<-let
		fmt.Fprint(w, "[accepted]")
	})
	done := h.BeginOrder(signed(paidFor("SO-1"), hookSecret, time.Now()), working)
	loaded := make(chan error, 1)
	go func() { loaded <- h.LoadCaddyfile(stripeSite(h.shop.Addr(), "hold_for 2h")) }()
	close(let)
	if a := <-done; a.Status != 200 || a.Body != "[accepted]" || h.state("r1") != "confirmed" {
		t.Errorf("%d %s, %s", a.Status, a.Body, h.state("r1"))
	}
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
}
