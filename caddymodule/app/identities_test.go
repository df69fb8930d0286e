package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/edge/fence"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
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

// An edge that sells by other rules for identities is named, in the doctor and at the start; one that has the same, or is not
// heard, is not.
func TestOtherEdgesHaveOtherRules(t *testing.T) {
	server := redistest.Start(t)
	app := map[string]any{"redis": map[string]any{"addresses": []string{server.Addr()}, "timeout": "1m"}, "identities": map[string]any{"buyer": "email"}}
	s := openShop(t, app, nil)
	openToBidders(s)
	becomes(s, "sold", bid{buyer: "Ann", skus: "plain"})
	s.Eventually("this edge tells its rules", func() (string, bool) {
		told, err := server.Client().HVals(t.Context(), "stockgate:identities").Result()
		return fmt.Sprint(told, err), len(told) == 1 && told[0] == "buyer email"
	})
	store := stocktest.OpenStore(t, stocktest.Options(server))
	other := fence.New(store, zap.NewNop(), new(stocktest.Counter))
	other.Start(t.Context())
	const text = "other edges sell by other `identities` than this one (buyer email): "
	note := func(edge, rules string, found bool) {
		t.Helper()
		if err := store.Shard().NoteRules(t.Context(), edge, rules); err != nil {
			t.Fatal(err)
		}
		if got := doctor(s); strings.Contains(got, text) != found {
			t.Errorf("%s with %q: %s", edge, rules, got)
		}
	}
	note("not-heard", "country DE", false)
	note(other.ID(), "country DE", false) // it sells nothing
	if err := store.Shard().Acquire(stocktest.Soon(t), "double11"); err != nil {
		t.Fatal(err)
	}
	s.Eventually("it is heard", func() (string, bool) {
		edges, err := store.Shard().OtherEdges(t.Context(), []string{"double11"}, "")
		return fmt.Sprint(edges, err), slices.Contains(edges, other.ID())
	})
	note(other.ID(), "buyer email", false)
	note(other.ID(), "country DE", true)
	note(other.ID(), "", true)
	s.Load(map[string]any{"redis": app["redis"], "identities": map[string]any{"country": "DE"}})
	s.Eventually("the reloaded edge warns", func() (string, bool) {
		return doctor(s), len(s.Logged("other edges sell by other `identities` than this one (country DE): "+other.ID()+" (none): a person who comes to both counts as two, with two limits; give all edges the same")) == 1
	})
}
