package app_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// With replica_acks and no replica the shop and operators get 503, the edge is not ready, and
// log and doctor say what to do. With a replica the same requests succeed.
func TestWithoutReplicas(t *testing.T) {
	server := redistest.Start(t)
	redis := map[string]any{"addresses": []string{server.Addr()}, "timeout": "1m"}
	app := map[string]any{"redis": redis}
	s := sitetest.Open(t, nil)
	s.Gates = []any{map[string]any{"handler": "stockgate_api", "keys": []string{sitetest.APIKey}}}
	s.Load(app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("r", "plain", 1, time.Hour)
	p.Hold("doubted", "plain", 1, time.Hour)
	p.Must(p.Doubt(t.Context(), "double11", "doubted", "timeout"))
	redis["replica_acks"], redis["replica_acks_wait"] = 1, "100ms"
	s.Load(app)

	if text := s.Get("/metrics").Body; !strings.Contains(text, "\nstockgate_ready 0\n") {
		t.Error("the edge says that it is ready")
	}
	if n := len(s.Logged("not selling: the gates answer 503")); n != 1 {
		t.Errorf("the log says %d times that nothing is sold", n)
	}
	if text := s.Admin("GET", "/stockgate/doctor", "").Body; !strings.Contains(text, "replica_acks 1: no replica is connected: connect one") ||
		!strings.Contains(text, "replica_acks wants 1, and the replicas that are connected are 0") {
		t.Error(text)
	}
	confirm := func() sitetest.Answer { return s.API("POST", "/reservations/r/confirm", `{"sale":"double11"}`) }
	operators := []struct{ method, path, body string }{
		{"POST", "/stockgate/sales/double11/items/plain/stock", `{"id":"a","delta":1}`},
		{"POST", "/stockgate/sales/double11/holds/confirm", `{"all":true}`},
		{"PUT", "/stockgate/sales/double11", strings.Replace(sitetest.SaleFile, "stock: 5", "stock: 6", 1)},
		{"POST", "/stockgate/sales/double11/pause", ""},
	}
	for range 2 {
		if a := confirm(); a.Status != http.StatusServiceUnavailable || !strings.Contains(sitetest.ProblemOf(t, a).Detail, "too few replicas of redis have it") {
			t.Errorf("the shop hears %d %s", a.Status, a.Body)
		}
		for _, c := range operators {
			if a := s.Admin(c.method, c.path, c.body); a.Status != http.StatusServiceUnavailable || !strings.Contains(a.Body, "0 of 1 replicas have it after 100ms: ask for the same again") {
				t.Errorf("%s %s: %d %s", c.method, c.path, a.Status, a.Body)
			}
		}
	}

	host, port, _ := net.SplitHostPort(server.Addr())
	redistest.Start(t, redistest.Config("replicaof "+host+" "+port))
	until := func(what string, ask func() sitetest.Answer) {
		t.Helper()
		a := ask()
		for end := time.Now().Add(2 * time.Minute); a.Status == http.StatusServiceUnavailable && time.Now().Before(end); {
			a = ask() // each waits for the replica
		}
		if a.Status != http.StatusOK {
			t.Errorf("with a replica, %s: %d %s", what, a.Status, a.Body)
		}
	}
	until("confirm", confirm)
	for _, c := range operators {
		until(c.path, func() sitetest.Answer { return s.Admin(c.method, c.path, c.body) })
	}
}
