package app_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// What a failover would lose is shown where operators look. At the bound buyers hear
// unavailable, and the sale goes on by itself when the replica has caught up.
func TestAtRiskOfASite(t *testing.T) {
	server := redistest.Start(t)
	replica := stocktest.Replica(t, server)
	s := openShop(t, map[string]any{"redis": map[string]any{"addresses": []string{server.Addr()}, "timeout": "1m", "at_risk": "3"}}, nil)
	openToBidders(s)
	const units, stopped = `stockgate_units_at_risk{sale="double11"}`, `stockgate_at_risk_stopped{sale="double11"}`
	buy := bid{buyer: "Ann", skus: "plain"}
	becomes(s, "sold", buy)
	s.UntilScraped(map[string]string{units: "0", stopped: "0"})

	s.Eventually("the edge counts what it reads", func() (string, bool) {
		state := app.Active().Runtime().AtRisk("double11")
		return fmt.Sprintf("%+v", state), sitetest.Follows("double11") && !state.Partial
	})
	replica.Pause()
	for i, buyer := range []string{"b1", "b2", "b3"} {
		if got := bidFor(s, bid{buyer: buyer, skus: "plain"}); got != "sold" {
			t.Errorf("%s: %s", buyer, got)
		}
		s.UntilScraped(map[string]string{units: strconv.Itoa(i + 1)})
	}
	a := s.AskWith("http", "POST", "/order", `{"items":[{"sku":"plain","n":1}]}`, map[string]string{"Content-Type": "application/json", "X-Buyer": "b4"})
	if a.Status != 503 || a.Header.Get("Stockgate-Refusal") != "unavailable" || a.Header.Get("Retry-After") == "" {
		t.Errorf("beyond the bound: %+v", a)
	}
	s.Expect(s.Scrape(), map[string]string{units: "3", stopped: "1", "stockgate_ready": "1"})
	var shown struct {
		ID    string
		Units int64 `json:"units_at_risk"`
		Age   int64 `json:"at_risk_ms"`
	}
	if text := s.Admin("GET", "/stockgate/sales/double11", "").Body; json.Unmarshal([]byte(text), &shown) != nil || shown.ID != "double11" || shown.Units != 3 || shown.Age <= 0 {
		t.Error(text)
	}
	if out := s.OK("sale", "show", "double11"); !strings.Contains(out, "3 units are at risk, the oldest for ") {
		t.Error(out)
	}
	const finding = "this edge sells no more of double11: 3 units are at risk, the oldest for "
	if text := s.Admin("GET", "/stockgate/doctor", "").Body; !strings.Contains(text, finding) || !strings.Contains(text, "and at_risk is 3; see that every replica") {
		t.Error(text)
	}

	replica.Resume()
	s.UntilScraped(map[string]string{units: "0", stopped: "0"})
	becomes(s, "sold", bid{buyer: "b4", skus: "plain"})
	if text := s.Admin("GET", "/stockgate/doctor", "").Body; strings.Contains(text, finding) {
		t.Error(text)
	}
	if n := len(s.Logged("not selling: as much is at risk as at_risk allows, because the replicas do not have what was sold; see that they are connected and keep up")); n != 1 {
		t.Errorf("the log says %d times that the bound is reached", n)
	}
}

// Where another server may take over, the configuration says what that may lose.
func TestAFailoverIsChosen(t *testing.T) {
	at := []string{"127.0.0.1:1"} // nothing is dialed
	s := sitetest.Open(t, nil)
	for name, test := range map[string]struct {
		redis map[string]any
		rates map[string]any
		says  string // empty: it is taken
	}{
		"sentinel":              {redis: map[string]any{"sentinel": "main"}, says: "with sentinel a replica takes over, which may lack what was sold a moment before: add `replica_acks 1 50ms`"},
		"sentinel, acks":        {redis: map[string]any{"sentinel": "main", "replica_acks": 1}},
		"sentinel, any":         {redis: map[string]any{"sentinel": "main", "at_risk": "any"}},
		"sentinel, units":       {redis: map[string]any{"sentinel": "main", "at_risk": "50"}},
		"cluster":               {redis: map[string]any{"cluster": true}, says: "with cluster a replica takes over, which may lack what was sold a moment before: add `at_risk 50` to sell"},
		"cluster, age":          {redis: map[string]any{"cluster": true, "at_risk": "1s"}},
		"one server":            {redis: map[string]any{}},
		"one server, units":     {redis: map[string]any{"at_risk": "50"}},
		"embedded":              {redis: map[string]any{"embedded": true, "addresses": nil, "at_risk": "any"}, says: "`embedded` stands alone"},
		"nothing":               {redis: map[string]any{"at_risk": "0"}, says: "nothing would be sold"},
		"a word":                {redis: map[string]any{"at_risk": "few"}, says: `at_risk "few" is neither any, nor a number of units such as 50, nor an age such as 1s`},
		"a short age":           {redis: map[string]any{"at_risk": "50ms"}, says: "at_risk 50ms is outside 300ms to 1h0m0s"},
		"rates may be lost":     {redis: map[string]any{}, rates: map[string]any{"sentinel": "main"}},
		"rates are not at risk": {redis: map[string]any{}, rates: map[string]any{"at_risk": "any"}, says: "rate_redis: neither embedded, replica_acks, at_risk nor fence goes with it"},
	} {
		app := map[string]any{"redis": test.redis}
		if _, ok := test.redis["addresses"]; !ok {
			test.redis["addresses"] = at
		}
		if test.rates != nil {
			test.rates["addresses"] = at
			app["rate_redis"] = test.rates
		}
		var c caddy.Config
		if err := caddy.StrictUnmarshalJSON(s.Config(app), &c); err != nil {
			t.Fatal(err)
		}
		err := caddy.Validate(&c)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}
