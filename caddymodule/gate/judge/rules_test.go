package judge_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate/caddymodule"
	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/try"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
)

// The order that docs/filters.md gives to operators is the order of the rules.
func TestRulesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/filters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, order, found := strings.Cut(strings.ToLower(string(page)), "## the order of checks")
	if !found {
		t.Fatal("docs/filters.md has no order of checks")
	}
	for _, name := range judge.RuleNames() {
		at := strings.Index(order, strings.ToLower(name))
		if at < 0 {
			t.Errorf("docs/filters.md does not have %q behind the rules before it", name)
			continue
		}
		order = order[at:]
	}
}

// A rule that is added in the one place where the order is refuses an attempt at a gate, at a
// stockgate_check, from memory, in `caddy stockgate try` and in shadow.
func TestARuleIsInOnePlace(t *testing.T) {
	defer judge.AddRule(func(a *sale.Attempt) *sale.Refusal {
		if a.Buyer != "odd" {
			return nil
		}
		return sale.Refuse(sale.NotEligible)
	})()
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	defer shop.Close()
	_, config := sitetest.Redis(t)
	s := sitetest.Open(t, config)
	s.OpenSale()
	s.Shop = shop.Listener.Addr().String()
	load := func(handler string, shadow bool) *judge.Judge {
		t.Helper()
		s.Gate = map[string]any{"handler": handler, "buyer": []string{"{header.X-User}"}, "lines": []any{map[string]any{"sku": []string{"{query.sku}"}}}}
		if shadow {
			s.Gate["shadow"] = true
		}
		s.Load(config)
		j, err := judge.Of(app.Active()).Find("")
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	ask := func(buyer string) sitetest.Answer {
		return s.AskWith("http", "POST", "/order?sku=plain", "", map[string]string{"X-User": buyer})
	}
	for _, handler := range []string{"stockgate", "stockgate_check"} {
		t.Run(handler, func(t *testing.T) {
			j := load(handler, false)
			ask("odd").Is(t, http.StatusForbidden, "not_eligible")
			ask("ann").Is(t, http.StatusCreated, "")
			for buyer, want := range map[string]sale.Reason{"odd": sale.NotEligible, "bob": ""} {
				var got sale.Reason
				r := httptest.NewRequest("POST", "/order?sku=plain", nil)
				r.Header.Set("X-User", buyer)
				if f := j.Foresee(r, nil, new(judge.Foresight), time.Now()); f.Refusal != nil {
					got = f.Refusal.Reason
				}
				if got != want {
					t.Errorf("%s, from memory: %q, not %q", buyer, got, want)
				}
				tried, err := try.Try(t.Context(), j, &adminapi.TryRequest{Request: []byte("POST /order?sku=plain HTTP/1.1\nHost: a\nX-User: " + buyer + "\n\n")})
				if err != nil || tried.Passes != (want == "") || want != "" && tried.Refusal.Reason != want {
					t.Errorf("%s, tried: %+v, %v", buyer, tried, err)
				}
			}
		})
	}
	t.Run("shadow", func(t *testing.T) {
		load("stockgate", true)
		ask("odd").Is(t, http.StatusCreated, "")
		s.Eventually("counted as one that would have been refused", func() (string, bool) {
			metrics := s.Admin("GET", "/metrics", "").Body
			return metrics, strings.Contains(metrics, `stockgate_shadow_total{outcome="sold_past",reason="not_eligible"`)
		})
	})
}
