package reply

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// An error route may proxy: the order must not reach the shop past the gate.
func TestRefusalAsErrorDropsTheOrder(t *testing.T) {
	f, err := refuse.New([]refuse.Appearance{{Reasons: []string{"*"}, Style: "error"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/api/order", strings.NewReader(`{"sku":"x"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	var handler caddyhttp.HandlerError
	if err := Refuse(f, w, r, sale.Refuse(sale.SoldOut)); !errors.As(err, &handler) || handler.StatusCode != 409 {
		t.Fatalf("error %v", err)
	}
	body, _ := io.ReadAll(r.Body)
	if r.Method != http.MethodGet || len(body) > 0 || r.ContentLength != 0 || r.Header.Get("Content-Type") != "" {
		t.Errorf("left of the order: %s %s %q", r.Method, r.Header, body)
	}
	if w.Header().Get("Stockgate-Refusal") != "sold_out" || w.Body.Len() > 0 {
		t.Errorf("header %v, body %q", w.Header(), w.Body)
	}
}
