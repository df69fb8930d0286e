//go:build !race

package judge

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// plainWriter takes an answer without allocating.
type plainWriter struct {
	header http.Header
	status int
	bytes  int
}

func (w *plainWriter) Header() http.Header  { return w.header }
func (w *plainWriter) WriteHeader(code int) { w.status = code }
func (w *plainWriter) Write(p []byte) (int, error) {
	w.bytes += len(p)
	return len(p), nil
}

// inCaddy prepares a request as Caddy does.
func inCaddy(r *http.Request) *http.Request {
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
}

// A refusal allocates nothing, whatever its reason and sale: it is counted and has all its
// headers, as a problem document or with a body of the operator's.
func TestRefusalsDoNotAllocate(t *testing.T) {
	limit := &sale.Limit{Per: sale.Union("buyer", "phone"), Every: "day", Max: 2, Count: "orders", SKU: "20002001"}
	r := httptest.NewRequest("POST", "/api/order", nil)
	r = inCaddy(r)
	languages := [][]string{nil, {"zh-CN,zh;q=0.9,en;q=0.8"}, {"fr", "de, zh-TW;q=0.5"}, {strings.Repeat("zh;q=0.1,", 2000)}}
	w := &plainWriter{header: make(http.Header)}
	for style, styles := range map[string][]refuse.Appearance{
		"problem": nil,
		"body":    {{Reasons: []string{"*"}, Body: `{"code":{status},"msg":"{title}","sku":"{sku}","again":{retry_after}}`}},
		"html":    {{Reasons: []string{"*"}, Body: `<p>{title} {sku}</p>`}},
		"fixed":   {{Reasons: []string{"*"}, Status: 200, Body: `{"code":1}`}},
	} {
		f, err := refuse.New(styles, nil)
		if err != nil {
			t.Fatal(err)
		}
		g := &Judge{filters: option.Filters{Refuser: f}}
		for _, kind := range sale.Kinds {
			for name, no := range map[string]*sale.Refusal{
				"plain":  {Reason: kind.Reason},
				"sku":    {Reason: kind.Reason, SKU: "20002001"},
				"limit":  {Reason: kind.Reason, Limit: limit, RetryAfter: 1800},
				"detail": {Reason: kind.Reason, Detail: "the order has no lines"},
				"task":   {Reason: kind.Reason, Challenge: "1.29906640.12.my3teqoPEzIOwrFRd2GHQA"},
				"twice":  {Reason: kind.Reason, Reservation: "01981b", RetryAfter: 10},
			} {
				next := 0
				if n := testing.AllocsPerRun(1000, func() {
					r.Header[refuse.AcceptLanguage] = languages[next%len(languages)]
					next++
					if err := g.Refuse(w, r, "double11", time.Now(), no); err != nil {
						t.Error(err)
					}
				}); n != 0 {
					t.Errorf("%s, %s, %s: %v allocations", style, kind.Reason, name, n)
				}
			}
		}
	}
	if w.bytes == 0 || w.status == 0 {
		t.Error("nothing was answered")
	}
}

func BenchmarkRefuseSoldOut(b *testing.B) {
	f, err := refuse.New(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	g := &Judge{filters: option.Filters{Refuser: f}}
	r := httptest.NewRequest("POST", "/api/order", nil)
	r = inCaddy(r)
	w := &plainWriter{header: make(http.Header)}
	no := &sale.Refusal{Reason: sale.AllHeld, SKU: "20002001"}
	b.ReportAllocs()
	for b.Loop() {
		_ = g.Refuse(w, r, "double11", time.Now(), no)
	}
}
