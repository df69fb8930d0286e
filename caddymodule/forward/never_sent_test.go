package forward

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Caddy's reverse_proxy without a server to send to returns the error that noUpstream knows. A
// Caddy with another error leaves such orders in doubt.
func TestNoUpstream(t *testing.T) {
	ctx, err := caddy.ProvisionContext(&caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := ctx.LoadModuleByID("http.handlers.reverse_proxy", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/order", nil)
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	err = loaded.(caddyhttp.MiddlewareHandler).ServeHTTP(w, r, next)
	if !noUpstream(err) {
		t.Errorf("reverse_proxy has no server, and its error is not known: %v", err)
	}
	for _, other := range []error{
		nil, errors.New("no upstreams available"), caddyhttp.Error(http.StatusBadGateway, errors.New("no upstreams available")),
		caddyhttp.Error(http.StatusServiceUnavailable, errors.New("the shop is closed")), caddyhttp.Error(http.StatusServiceUnavailable, nil),
	} {
		if noUpstream(other) {
			t.Errorf("%v is no sign that reverse_proxy found no server", other)
		}
	}
}
