package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// Limits, unpaid holds and lists know a person by any spelling of a phone and an e-mail address. Other rules in
// the middle of a sale are a warning.
func TestIdentities(t *testing.T) {
	_, config := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	config["identities"] = map[string]any{"country": "DE", "buyer": "email"}
	config["lists"] = map[string]any{
		"bad": fileSource(s.File("bad.txt", "email:Bad@X.test\nbuyer:Mallory@X.test\nEve@X.test\nphone:0171 6666666\n")), "worse": redisSource,
	}
	useGate(s, map[string]any{"deny": []string{"bad", "worse"}, "identities": map[string]any{"phone": []string{"{json.phone}"}, "email": []string{"{json.email}"}}})
	s.Load(config)
	s.Eventually("ready", func() (string, bool) {
		a := s.Admin("PUT", "/stockgate/sales/double11", sitetest.ListsSale+"missing: skip\nlimits:\n"+
			"  - {per: buyer, every: sale, max: 1, count: orders}\n  - {per: phone, every: sale, max: 1, count: orders}\n  - {per: email, every: sale, max: 1, count: orders}\n")
		return a.Body, a.Status == 200
	})
	sitetest.Do[any](s, "POST", "/stockgate/sales/double11/open", "")
	s.OK("list", "add", "worse", "phone:+49 (0)171 7777777", "email:Worse@X.test")
	order := func(buyer, phone, email string) bid {
		return bid{buyer: buyer, ip: "198.51.100.1", body: fmt.Sprintf(`{"items":[{"sku":"plain","n":1}],"phone":%q,"email":%q}`, phone, email)}
	}
	becomes(s, "denied", order("l1", "0171/7777777", ""))
	for _, c := range []struct {
		bid  bid
		want string
	}{
		{order("Ann@X.test", "", ""), "sold"},
		{order("ann@x.test", "", ""), "limit_reached"},
		{order("ann+1@x.test", "", ""), "sold"}, // tags are kept
		{order("p1", "0171 1234567", ""), "sold"},
		{order("p2", "+49 171 1234567 x12", ""), "limit_reached"},
		{order("p3", "+1-800-FLOWERS", ""), "sold"},
		{order("p4", "+1-800-CONTACTS", ""), "sold"},
		{order("p5", "+1 800 356 9377", ""), "limit_reached"},
		{order("e1", "", "C@x.test"), "sold"},
		{order("e2", "", "c@X.test"), "limit_reached"},
		{order("e3", "", "c"), "malformed"},
		{order("a@", "", ""), "malformed"},
		{order("l2", "+49171/6666666", ""), "denied"},
		{order("l3", "", "BAD@x.test"), "denied"},
		{order("l4", "", "worse@x.test"), "denied"},
		{order("MALLORY@x.test", "", ""), "denied"},
		{order("eve@x.test", "", ""), "denied"},
		{order("l5", "", "eve@x.test"), "denied"},
	} {
		if got := bidFor(s, c.bid); got != c.want {
			t.Errorf("%+v: %s, want %s", c.bid, got, c.want)
		}
	}

	config["identities"] = map[string]any{"buyer": "email"}
	s.Load(config)
	if got := s.Logged("the option `identities` has changed while sales are open: " + app.RulesChanged); len(got) != 1 {
		t.Errorf("the log says %v", got)
	}
	const finding = "double11 opened with other `identities` than now (country DE, buyer email)"
	if got := s.Run("doctor").Out; !strings.Contains(got, finding) {
		t.Errorf("the doctor finds\n%s", got)
	}
	config["identities"] = map[string]any{"buyer": "email", "country": "DE"}
	s.Load(config)
	if got := s.Run("doctor").Out; strings.Contains(got, finding) {
		t.Errorf("after a way back the doctor finds\n%s", got)
	}
	config["identities"] = map[string]any{"country": "+49"}
	if err := s.TryLoad(config); err == nil || !strings.Contains(err.Error(), `identities: country "+49": write the two letters`) {
		t.Errorf("a country that is none: %v", err)
	}
}
