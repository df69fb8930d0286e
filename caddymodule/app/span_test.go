package app_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// recorded has the spans of the test's requests.
var recorded = tracetest.NewSpanRecorder()

// testTracer does what Caddy's directive tracing does, with spans that a test can read.
type testTracer struct{}

func (testTracer) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_tracer", New: func() caddy.Module { return new(testTracer) }}
}

func (testTracer) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorded))
	ctx, root := provider.Tracer("test").Start(r.Context(), "request")
	defer root.End()
	return next.ServeHTTP(w, r.WithContext(ctx))
}

func init() { caddy.RegisterModule(testTracer{}) }

// An attempt that is traced has a span for each step, each within the request's or the
// forwarding's; a refused one ends with the filters.
func TestSpans(t *testing.T) {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusCreated) }))
	defer shop.Close()
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.Shop = shop.Listener.Addr().(*net.TCPAddr).String()
	s.Gates = []any{map[string]any{"handler": "test_tracer"}}
	s.Gate = map[string]any{"handler": "stockgate", "buyer": []string{"{header.X-User}"}, "lines": []any{map[string]any{"sku": []string{"{json.sku}"}}}}
	s.Load(app)
	s.OpenSale()
	buy := func(sku string) int {
		return s.AskWith("http", "POST", "/order", `{"sku":"`+sku+`"}`, map[string]string{"Content-Type": "application/json", "X-User": "ann"}).Status
	}
	check := func(sku string, status int, want map[string]string) {
		t.Helper()
		recorded.Reset()
		if got := buy(sku); got != status {
			t.Fatalf("%d, not %d", got, status)
		}
		names := make(map[string]string)
		for _, one := range recorded.Ended() {
			names[one.SpanContext().SpanID().String()] = one.Name()
		}
		got := make(map[string]string)
		for _, one := range recorded.Ended() {
			got[one.Name()] = names[one.Parent().SpanID().String()]
		}
		for name, parent := range want {
			if p, ok := got[name]; !ok || p != parent {
				t.Errorf("%s: the span %s is in %q, not %q: %v", sku, name, p, parent, got)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", sku, got, want)
		}
	}
	check("plain", http.StatusCreated, map[string]string{
		"request": "", "stockgate.read": "request", "stockgate.filter": "request", "stockgate.reserve": "request",
		"stockgate.forward": "request", "stockgate.resolve": "stockgate.forward",
	})
	check("nosuch", http.StatusNotFound, map[string]string{"request": "", "stockgate.read": "request", "stockgate.filter": "request"})
}
