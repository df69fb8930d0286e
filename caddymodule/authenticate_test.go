package caddymodule

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/sale"
)

// A gate with a JWT asks for a token where it answers 401, and only there.
func TestAuthenticate(t *testing.T) {
	for name, c := range map[string]struct {
		styles []RefusalStyle
		no     *sale.Refusal
		off    bool
		want   string
	}{
		"no token":         {nil, sale.Refuse(sale.NoBuyer), false, "Bearer"},
		"a bad one":        {nil, &sale.Refusal{Reason: sale.NoBuyer, Detail: "it has expired"}, false, `Bearer error="invalid_token", error_description="it has expired"`},
		"gate without JWT": {nil, sale.Refuse(sale.NoBuyer), true, ""},
		"another reason":   {nil, sale.Refuse(sale.SoldOut), false, ""},
		"another status":   {[]RefusalStyle{{Reasons: []string{"no_buyer"}, Status: 200, Body: "{}"}}, sale.Refuse(sale.NoBuyer), false, ""},
		"another body":     {[]RefusalStyle{{Reasons: []string{"no_buyer"}, Body: "{}"}}, sale.Refuse(sale.NoBuyer), false, "Bearer"},
		"as an error":      {[]RefusalStyle{{Reasons: []string{"*"}, Style: "error"}}, sale.Refuse(sale.NoBuyer), false, "Bearer"},
		"another, as 401":  {[]RefusalStyle{{Reasons: []string{"limit_reached"}, Status: 401}}, sale.Refuse(sale.LimitReached), false, "Bearer"},
	} {
		f, err := newRefuser(c.styles)
		if err != nil {
			t.Fatal(err)
		}
		f.asksToken = !c.off
		w := httptest.NewRecorder()
		err = replyRefusal(f, w, httptest.NewRequest("POST", "/api/order", nil), c.no)
		if _, handed := errors.AsType[caddyhttp.HandlerError](err); err != nil && !handed {
			t.Fatal(err)
		}
		if got := w.Header().Get("WWW-Authenticate"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
