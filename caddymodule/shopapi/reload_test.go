package shopapi_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// A request of the shop that arrives before Caddy reloads to another Redis reaches the first
// Redis.
func TestAPIOutlivesAReload(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	app := map[string]any{"redis": map[string]any{"addresses": []string{proxy.Addr()}, "timeout": "20s"}}
	s := sitetest.Open(t, nil)
	s.Gates = []any{map[string]any{"handler": "stockgate_api", "keys": []string{sitetest.APIKey}}}
	s.Load(app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("r", "plain", 1, time.Hour)

	_, other := sitetest.Redis(t)
	proxy.HoldRequests("EVALSHA confirm")
	done := make(chan sitetest.Answer, 1)
	first := *s // whose sockets are those of the first configuration
	go func() { done <- first.API("POST", "/reservations/r/confirm", `{"sale":"double11"}`) }()
	ctx, cancel := context.WithTimeout(t.Context(), sitetest.Patience)
	defer cancel()
	for flights() == 0 { // until the request is on its way to Redis
		if ctx.Err() != nil {
			t.Fatal("the request does not come")
		}
		runtime.Gosched()
	}
	if err := proxy.WaitHeld(ctx); err != nil {
		t.Fatal(err)
	}
	s.Load(other)
	proxy.ReleaseRequests()
	select {
	case a := <-done:
		if r := sitetest.RecordOf(t, a); r.State != record.Confirmed {
			t.Errorf("%+v", r)
		}
	case <-ctx.Done():
		t.Fatal("no answer")
	}
	if a := s.API("GET", "/reservations/r", ""); a.Status != 404 {
		t.Errorf("the other Redis: %d %s", a.Status, a.Body)
	}
}

// flights returns how many requests need the edge runtime of the running app.
func flights() int { return app.Active().Runtime().InFlight() }
