package adminapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// A dry run foresees that orders which wait are released at once: the shop does not have them.
func TestAdminForeseesTheReleaseOfWhatWaits(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	for i := range 3 {
		if waits := p.Order(fmt.Sprint("r", i), sitetest.Queue(1)); waits != (i > 0) {
			t.Errorf("order %d waits: %t", i, waits)
		}
	}
	for _, dry := range []string{`,"dry_run":true`, ""} {
		got := sitetest.Do[bulk](s, "POST", "/stockgate/sales/double11/holds/release", `{"state":"held","all":true`+dry+`}`).String()
		if got != "3: 2 changed (0 in doubt), 0 already, too soon r0; 0 in doubt" {
			t.Errorf("%q: %s", dry, got)
		}
	}
}

// Operators see the line of a sale, stop it, let it go on, and release what waits in it.
func TestAdminQueue(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	const path = "/stockgate/sales/double11/queue"
	if shown := sitetest.Do[adminapi.SaleShown](s, "GET", "/stockgate/sales/double11", ""); shown.Queue != nil {
		t.Errorf("a sale without a queue shows %+v", shown.Queue)
	}
	if got := sitetest.Do[adminapi.QueueState](s, "GET", path, ""); got != (adminapi.QueueState{ID: "double11"}) {
		t.Errorf("the line of a sale without a queue: %+v", got)
	}
	p := sitetest.NewShopper(t, server)
	for i := range 5 {
		if waits := p.Order(fmt.Sprint("r", i), sitetest.Queue(1)); waits != (i > 0) {
			t.Errorf("order %d waits: %t", i, waits)
		}
	}
	seen := sitetest.Do[adminapi.QueueState](s, "GET", path, "")
	if seen.Waiting != 4 || seen.AtShop != 1 || seen.Bytes != 4*int64(len("an order")) || seen.Paused {
		t.Errorf("the line: %+v", seen)
	}
	if shown := sitetest.Do[adminapi.SaleShown](s, "GET", "/stockgate/sales/double11", ""); shown.Queue == nil || shown.Queue.Waiting != 4 || shown.Queue.OldestMs < seen.OldestMs {
		t.Errorf("the sale shows %+v, then %+v", seen, shown.Queue)
	}
	for range 2 {
		if got := sitetest.Do[adminapi.QueueState](s, "POST", path+"/pause", ""); !got.Paused || got.Waiting != 4 {
			t.Errorf("paused: %+v", got)
		}
	}
	if got := sitetest.Do[adminapi.QueueState](s, "GET", path, ""); !got.Paused {
		t.Errorf("after the pause: %+v", got)
	}
	if got := sitetest.Do[adminapi.QueueState](s, "POST", path+"/resume", ""); got.Paused {
		t.Errorf("resumed: %+v", got)
	}
	// the first ones first, and nothing that is at the shop
	for _, c := range []struct {
		query             string
		released, waiting int64
	}{{"?most=1", 1, 3}, {"", 3, 0}, {"", 0, 0}} {
		if got := sitetest.Do[adminapi.QueueDrained](s, "POST", path+"/drain"+c.query, ""); got.Released != c.released || got.Waiting != c.waiting || got.AtShop != 1 {
			t.Errorf("drain%s: %+v, want %d released", c.query, got, c.released)
		}
		if c.query != "" {
			for id, want := range map[string]record.State{"r0": record.Held, "r1": record.Released, "r2": record.Held} {
				r, err := p.ReservationIn(t.Context(), "double11", id)
				if err != nil || r.State != want {
					t.Errorf("%s is %+v (%v), want %s", id, r, err, want)
				}
			}
		}
	}
	if r, err := p.ReservationIn(t.Context(), "double11", "r4"); err != nil || r.State != record.Released || r.Cause != "operator:annofaccounts@unix" {
		t.Errorf("a drained order: %+v %v", r, err)
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); !b.Balanced || b.Cell("plain", "") != "100 99 1 0 0" {
		t.Errorf("the stock after the drain: %+v", b)
	}
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"POST", path + "/drain?most=0", http.StatusBadRequest},
		{"POST", path + "/drain?most=5001", http.StatusBadRequest},
		{"POST", path + "/drain?most=x", http.StatusBadRequest},
		{"POST", path + "/pause?most=1", http.StatusBadRequest},
		{"GET", path + "?x=1", http.StatusBadRequest},
		{"GET", "/stockgate/sales/UPPER/queue", http.StatusBadRequest},
		{"GET", "/stockgate/sales/other/queue", http.StatusNotFound},
		{"POST", "/stockgate/sales/other/queue/pause", http.StatusNotFound},
		{"POST", "/stockgate/sales/other/queue/resume", http.StatusNotFound},
		{"POST", "/stockgate/sales/other/queue/drain", http.StatusNotFound},
	} {
		if a := s.Admin(c.method, c.path, ""); a.Status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, a.Status, a.Body, c.status)
		}
	}
	if logged := s.Logged("queue drained"); len(logged) != 3 {
		t.Errorf("logged: %v", logged)
	}
}

// More orders than one script call releases.
func TestDrainLongLine(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"more","delta":1000}`)
	p := sitetest.NewShopper(t, server)
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/queue/pause", "")
	for i := range 450 {
		p.Order(fmt.Sprint("r", i), sitetest.Queue(1))
	}
	if got := sitetest.Do[adminapi.QueueDrained](s, "POST", "/stockgate/sales/double11/queue/drain?most=401", ""); got.Released != 401 || got.Waiting != 49 {
		t.Errorf("%+v", got)
	}
	if got := sitetest.Do[adminapi.QueueDrained](s, "POST", "/stockgate/sales/double11/queue/drain", ""); got.Released != 49 || got.Waiting != 0 || got.Bytes != 0 {
		t.Errorf("%+v", got)
	}
}

// The doctor says why orders wait and none goes to the shop.
func TestDoctorSeesLine(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	finding := func() string {
		t.Helper()
		var found []string
		for _, f := range sitetest.Do[adminapi.Diagnosis](s, "GET", "/stockgate/doctor", "").Findings {
			if f.Check == "queue" {
				found = append(found, f.Level+": "+f.Text)
			}
		}
		return strings.Join(found, "\n")
	}
	says := func(when string, words ...string) {
		t.Helper()
		got := finding()
		for _, word := range words {
			if !strings.Contains(got, word) {
				t.Errorf("%s: %q does not say %q", when, got, word)
			}
		}
	}
	if got := finding(); got != "" {
		t.Errorf("about a sale without a queue: %s", got)
	}
	p := sitetest.NewShopper(t, server)
	for i := range 3 {
		p.Order(fmt.Sprint("r", i), sitetest.Queue(1))
	}
	says("they came just now", "ok: 2 orders of double11 wait for the shop")
	// a minute later
	client, ctx := server.Client(), t.Context()
	const orders, line = "stockgate:{double11.0}:orders", "stockgate:{double11.0}:queue"
	set := func(key string, fields ...any) {
		t.Helper()
		if err := client.HSet(ctx, key, fields...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	order, err := client.HGet(ctx, orders, "r1").Result()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(order) // see lua/queue.lua
	words[4] = fmt.Sprint(time.Now().Add(-time.Minute).UnixMilli())
	set(orders, "r1", strings.Join(words, " "))
	for i := range 10 {
		set(line, fmt.Sprint("s", i), "0 0")
	}
	says("no edge runs", "error: 2 orders of double11 wait for the shop, the oldest for 1m", "no edge sends them: start an edge")
	set(line, "e|dead", time.Now().Add(-time.Second).UnixMilli())
	says("its edge has stopped", "error: ", "no edge sends them")
	set(line, "e|A", time.Now().Add(time.Hour).UnixMilli())
	says("the shop does not answer", "warning: ", "none leaves while 1 are at the shop", "(A)")
	p.Must(p.Confirm(ctx, "double11", "r0", reservation.SourceAnswer, "2xx"))
	says("the edge that runs has another gate", "error: ", "no edge that runs (A) has the gate")
	set(line, "next", time.Now().Add(40*time.Second).UnixMicro())
	says("by the pace", "ok: ", "by the pace the next one goes in ")
	set(line, "until", time.Now().Add(40*time.Second).UnixMilli())
	says("the shop has asked for later", "warning: ", "the shop has asked for no order for ", "queue resume double11")
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/queue/pause", "")
	says("paused", "warning: 2 orders of double11 wait", "an operator has paused the line")
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/queue/drain", "")
	says("paused and empty", "warning: an operator has paused the line of double11: orders that come will wait")
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/queue/resume", "")
	says("empty", "ok: no order of double11 waits")
}
