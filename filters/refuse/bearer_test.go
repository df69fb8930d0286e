package refuse

import (
	"net/http/httptest"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

// A gate with a JWT asks for a token where it answers 401, and only there.
func TestAuthenticate(t *testing.T) {
	for name, c := range map[string]struct {
		styles []Appearance
		no     *sale.Refusal
		off    bool
		want   string
	}{
		"no token":         {nil, sale.Refuse(sale.NoBuyer), false, "Bearer"},
		"a bad one":        {nil, &sale.Refusal{Reason: sale.NoBuyer, Detail: "it has expired"}, false, `Bearer error="invalid_token", error_description="it has expired"`},
		"gate without JWT": {nil, sale.Refuse(sale.NoBuyer), true, ""},
		"another reason":   {nil, sale.Refuse(sale.SoldOut), false, ""},
		"another status":   {[]Appearance{{Reasons: []string{"no_buyer"}, Status: 200, Body: "{}"}}, sale.Refuse(sale.NoBuyer), false, ""},
		"another body":     {[]Appearance{{Reasons: []string{"no_buyer"}, Body: "{}"}}, sale.Refuse(sale.NoBuyer), false, "Bearer"},
		"as an error":      {[]Appearance{{Reasons: []string{"*"}, Style: "error"}}, sale.Refuse(sale.NoBuyer), false, "Bearer"},
		"another, as 401":  {[]Appearance{{Reasons: []string{"limit_reached"}, Status: 401}}, sale.Refuse(sale.LimitReached), false, "Bearer"},
	} {
		f, err := New(c.styles, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.AsksToken = !c.off
		w := httptest.NewRecorder()
		f.Write(f.For(c.no.Reason), w, httptest.NewRequest("POST", "/api/order", nil), c.no)
		if got := w.Header().Get("WWW-Authenticate"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
