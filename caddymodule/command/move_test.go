package command_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/store/waitlist"
)

// A shop outgrows its machine: the stock goes to a Redis with all that was promised, sells there alone, and comes back.
func TestMove(t *testing.T) {
	server, redis := sitetest.Redis(t)
	dir := shortDir(t)
	store := map[string]any{"store": map[string]any{"dir": dir, "timeout": "1m"}}
	s := sitetest.Open(t, store)
	s.OpenSale()
	sitetest.Do[any](s, "PUT", "/stockgate/sales/double11", sitetest.SaleFile+"waitlist: {}\n")
	here := sitetest.NewStoreShopper(t, dir)
	here.HoldAs(record.ModeBackend, "waits", "plain", 2, time.Hour)
	order(t, here, 1)
	here.HoldAs(record.ModeBackend, "few", "few", 3, time.Hour)
	enter(t, here, "Ben")
	says := func(status int, want string, args ...string) {
		t.Helper()
		if r := s.Run(append([]string{"move"}, args...)...); r.Status != status || !strings.Contains(r.Out+r.Errors, want) {
			t.Errorf("%q: %d, it does not say %q:\n%s%s", args, r.Status, want, r.Out, r.Errors)
		}
	}
	says(2, "say where the stock goes")
	says(2, "write the whole path", "--to", "./there")
	says(2, "write the whole path", "--to", "var/there")
	says(2, "exclude each other", "--to", dir, "--undo")
	says(2, "the other options are for a Redis only", "--to", dir, "--cluster")
	says(2, "several addresses need", "--to", server.Addr()+",127.0.0.1:1")
	says(2, "it has no password", "--to", server.Addr(), "--password-file", s.File("empty", "\n"))
	says(2, "write the whole path", "--to", server.Addr(), "--tls", "--ca", "ca.pem")
	says(2, "the other options are for a Redis only", "--to", dir, "--server-name", "redis")
	says(2, "ca, certificate and server_name are for TLS", "--to", server.Addr(), "--server-name", "redis")
	says(2, "a client certificate needs its key", "--to", server.Addr(), "--tls", "--certificate", "/etc/redis/edge.pem")
	says(2, "need `sentinel <master>`", "--to", server.Addr(), "--sentinel-username", "watcher")
	says(1, "is in "+dir+" already", "--to", dir)
	says(1, "no move from here is under way", "--undo")
	says(1, "sale double11 is open: pause it first, `caddy stockgate sale pause double11`", "--to", server.Addr())
	says(3, "redis does not answer", "--to", "127.0.0.1:1")

	s.OK("sale", "pause", "double11")
	if said := s.OK("move", "--to", "redis://"+server.Addr()); !strings.Contains(said, "All stock is in "+server.Addr()+": 1 sale") || !strings.Contains(said, "Write `redis "+server.Addr()+"`") {
		t.Errorf("it says\n%s", said)
	}
	if r := s.Run("sale", "open", "double11"); r.Status != 3 || !strings.Contains(r.Errors, "the stock has been moved") {
		t.Errorf("opened where it was: %+v", r)
	}
	if d := s.Admin("GET", "/stockgate/doctor", ""); !strings.Contains(d.Body, "the stock has left for "+server.Addr()) || strings.Contains(d.Body, "a newer stockgate") {
		t.Errorf("the doctor says\n%s", d.Body)
	}
	says(0, "All stock is in "+server.Addr(), "--to", server.Addr()) // which changes nothing
	says(1, "the stock has left for "+server.Addr(), "--undo")

	if health := s.Admin("GET", "/stockgate/health", ""); health.Status != 503 || len(s.Logged("not selling: the gates answer 503")) == 0 {
		t.Errorf("an edge at the old place is %s", health.Body)
	}
	s.Load(redis)
	s.OK("sale", "open", "double11")
	there := sitetest.NewShopper(t, server)
	there.Must(there.Confirm(t.Context(), "double11", "waits", reservation.SourceShop, "paid"))
	order(t, there, 2)
	if all, last, err := waitlist.ReadAll(t.Context(), there.Shard().Data("double11")); err != nil || len(all) != 1 || last != 1 || all[0].Buyer != "Ben" || all[0].Identity("phone") != "of-Ben" {
		t.Errorf("%d people wait, the last is %d, %v", len(all), last, err)
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" || b.Cell("plain", "") != "100 96 0 0 4" {
		t.Errorf("the sale is %+v", b)
	}
	if d := s.Admin("GET", "/stockgate/doctor", ""); strings.Contains(d.Body, `"check":"move"`) || strings.Contains(d.Body, "signing key") && strings.Contains(d.Body, "another") {
		t.Errorf("the doctor says\n%s", d.Body)
	}

	s.OK("sale", "pause", "double11")
	s.Eventually("back into the directory, once its server has ended", func() (string, bool) {
		r := s.Run("move", "--to", dir)
		return r.Errors, r.Status == 0
	})
	s.Load(store)
	s.OK("sale", "open", "double11")
	here = sitetest.NewStoreShopper(t, dir)
	order(t, here, 3)
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" || b.Cell("plain", "") != "100 95 0 0 5" {
		t.Errorf("the sale is %+v", b)
	}
	if err := there.SetStatus(t.Context(), "double11", sale.Open, "me"); !errors.Is(err, shard.ErrMoved) {
		t.Errorf("both sell: %v", err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

// A reload to another Redis while a move waits for the shop does not break it off.
func TestMoveOutlivesAReload(t *testing.T) {
	server, redis := sitetest.Redis(t)
	dir := shortDir(t)
	s := sitetest.Open(t, map[string]any{"store": map[string]any{"dir": dir, "timeout": "1m"}})
	s.OpenSale()
	here := sitetest.NewStoreShopper(t, dir)
	here.Hold("asked", "plain", 1, time.Hour)
	s.OK("sale", "pause", "double11")
	body, socket, done := strings.NewReader(`{"redis":["`+server.Addr()+`"]}`), s.Socket("admin"), make(chan struct{})
	go func() {
		defer close(done)
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
		if a, err := c.Post("http://127.0.0.1/stockgate/move", "application/json", body); err == nil { // the reload may end it
			a.Body.Close()
		}
	}()
	s.Eventually("it waits for the shop", func() (string, bool) {
		for _, entry := range s.Logged("moving the stock") {
			if stage, _ := entry["stage"].(string); strings.Contains(stage, "the shop is answering orders") {
				return stage, true
			}
		}
		return "silent", false
	})
	s.Load(map[string]any{"redis": map[string]any{"embedded": true}})
	here.Must(here.Confirm(t.Context(), "double11", "asked", reservation.SourceAnswer, ""))
	<-done
	s.Load(redis)
	s.Eventually("the stock is there", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/sales/double11", "")
		return a.Body, a.Status == 200
	})
	s.Eventually("it sells", func() (string, bool) {
		r := s.Run("sale", "open", "double11")
		return r.Errors, r.Status == 0
	})
	order(t, sitetest.NewShopper(t, server), 1)
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Cell("plain", "") != "100 98 0 0 2" {
		t.Errorf("the sale is %+v", b)
	}
}
