package command_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

const personSite = `
	stockgate_guard
	@order {
		method POST
		path /order
	}
	stockgate @order main {
		buyer       {header.X-User}
		identity    phone {header.X-Phone}
		line        {json.sku} {json.quantity}
		ref         {json.ref}
		idempotency {header.Idempotency-Key}
	}
	reverse_proxy SHOP`

const personSales = `
id: NAME
starts_at: 2020-11-11T00:00:00+08:00
ends_at: 2090-11-12T00:00:00+08:00
items:
  - {sku: NAME-item, stock: 10}
limits:
  - {per: buyer, every: sale, max: 2, count: units}
  - {per: phone, every: day, max: 5, count: units}
`

// personShop is a site with two sales, a ledger and a list, in which u42 and u7 have bought.
type personShop struct {
	*sitetest.Site
	server *redistest.Server
	ledger ledger.Ledger
}

func openPersonShop(t *testing.T) *personShop {
	t.Helper()
	server, app := sitetest.Redis(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	app["ledger"] = map[string]any{"driver": "sqlite", "file": file}
	shop := sitetest.NewBackend(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("thank you, " + r.Header.Get("X-User")))
	})
	s := &personShop{sitetest.Open(t, app), server, openLedger(t, file)}
	for _, name := range []string{"first", "second"} {
		s.OK("sale", "apply", s.File(name+".yaml", strings.ReplaceAll(personSales, "NAME", name)))
		s.OK("sale", "open", name)
	}
	s.Redis, s.Options = server.Addr(), "list bad redis\nlist vips redis\nledger sqlite "+file
	if err := s.LoadCaddyfile(strings.Replace(personSite, "SHOP", shop.Listener.Addr().String(), 1)); err != nil {
		t.Fatal(err)
	}
	s.Eventually("ready", func() (string, bool) {
		a := s.Admin("GET", "/stockgate/health", "")
		return a.Body, a.Status == http.StatusOK
	})
	return s
}

func (s *personShop) order(user, phone, sale, ref, key string) sitetest.Answer {
	s.T.Helper()
	return s.AskWith("http", "POST", "/order", `{"sku":"`+sale+`-item","quantity":1,"ref":"`+ref+`"}`,
		map[string]string{"X-User": user, "X-Phone": phone, "Idempotency-Key": key, "Content-Type": "application/json"})
}

func (s *personShop) bought(user, phone, sale, ref, key string) {
	s.T.Helper()
	if a := s.order(user, phone, sale, ref, key); a.Status != http.StatusCreated {
		s.T.Fatalf("%s gets %d %s", ref, a.Status, a.Body)
	}
}

// caughtUp waits until the ledger has both sales.
func (s *personShop) caughtUp() {
	s.T.Helper()
	s.Eventually("the ledger has everything", func() (string, bool) {
		a := s.OK("journal", "status", "--json")
		var all adminapi.JournalStates
		if err := json.Unmarshal([]byte(a), &all); err != nil {
			return err.Error(), false
		}
		for _, j := range all.Journals {
			if j.Ledger == nil || j.Ledger.Behind > 0 || j.Ledger.Trouble != "" {
				return a, false
			}
		}
		return a, true
	})
}

func (s *personShop) person(args ...string) adminapi.PersonData {
	s.T.Helper()
	var found adminapi.PersonData
	if err := json.Unmarshal([]byte(s.OK(append([]string{"person"}, append(args, "--json")...)...)), &found); err != nil {
		s.T.Fatal(err)
	}
	return found
}

// A person is found in sales, lists and the ledger. An erasure takes what neither books nor limits need: afterwards
// the books agree, and a limit that was used up is so still.
func TestPerson(t *testing.T) {
	s := openPersonShop(t)
	s.bought("u42", "+86 138-0013-8000", "first", "SO-1", "k1")
	s.bought("u42", "+86 138-0013-8000", "first", "SO-2", "k2")
	s.bought("u42", "+86 13900000000", "second", "SO-3", "k3")
	s.bought("u7", "+86 138 0013 8000", "second", "SO-4", "k4")
	s.OK("list", "add", "vips", "buyer:u42", "phone:+8613800138000", "buyer:u7")
	s.OK("list", "add", "bad", "buyer:u8")
	s.caughtUp()
	redis := s.server.Client()

	found := s.person("show", "--buyer", "u42")
	if len(found.Sales) != 2 || len(found.Sales[0].Reservations) != 2 || len(found.Sales[1].Reservations) != 1 || len(found.Lists) != 1 || found.Lists[0] != (adminapi.PersonListed{List: "vips", Kind: "buyer"}) {
		t.Fatalf("%+v", found)
	}
	first := found.Sales[0]
	if first.ID != "first" || first.Status != "open" || len(first.Answers) != 2 || first.Answers[0].Of != "key" || len(first.Counters) != 1 || first.Counters[0].Units != 2 || first.Reservations[0].State != "confirmed" {
		t.Errorf("the first sale has %+v", first)
	}
	for _, rows := range found.Ledger {
		if rows.Kind != "buyer" || rows.Movements != 2*rows.Reservations {
			t.Errorf("the ledger has %+v", rows)
		}
	}
	if len(found.Ledger) != 2 || found.Ledger[0].Reservations != 2 {
		t.Errorf("the ledger has %+v", found.Ledger)
	}

	byPhone := s.person("show", "--phone", "+8613800138000")
	if len(byPhone.Sales) != 2 || byPhone.Sales[1].Reservations[0].Ref != "SO-4" || byPhone.Sales[0].Counters[0].Ends.IsZero() || len(byPhone.Ledger) != 2 || byPhone.Ledger[1].Reservations != 1 {
		t.Errorf("by the phone there are %+v", byPhone)
	}
	if both := s.person("show", "--phone", "+8613800138000", "--buyer", "u42"); len(both.Sales[1].Reservations) != 2 || len(both.Lists) != 2 {
		t.Errorf("both identities give %+v", both)
	}
	if r := sitetest.Run(t, "u42\n", "--address", s.AdminAddress(), "person", "show", "--buyer", "-"); !strings.Contains(r.Out, "SO-3") || !strings.Contains(r.Out, "Not searched:") || strings.Contains(r.Out, "SO-4") {
		t.Errorf("from standard input: %+v", r)
	}
	if none := s.OK("person", "show", "--buyer", "U42"); !strings.Contains(none, "(none)") {
		t.Errorf("an unknown person has\n%s", none)
	}

	if dry := s.OK("person", "erase", "--buyer", "u42", "--dry-run"); !strings.Contains(dry, "Would be removed: 3 answers of the shop, 0 entries of lists") || !strings.Contains(dry, "2 reservations") {
		t.Errorf("%s", dry)
	}
	if again := s.order("u42", "+86 138-0013-8000", "first", "SO-1", "k1"); again.Body != "thank you, u42" || again.Header.Get("Stockgate-Replayed") != "true" {
		t.Errorf("after a dry run a retry gets %d %s", again.Status, again.Body)
	}
	erased := s.person("erase", "--buyer", "u42", "--yes", "--lists")
	if *erased.Erased != (adminapi.PersonErased{Answers: 3, ListEntries: 1}) || len(erased.Kept) == 0 {
		t.Errorf("erased %+v, kept %+v", erased.Erased, erased.Kept)
	}
	for _, a := range first.Answers {
		if n, err := redis.Exists(t.Context(), "stockgate:{first.0}:answer:"+a.Reservation).Result(); n != 0 || err != nil {
			t.Errorf("the answer to %s is still there: %v", a.Reservation, err)
		}
	}
	s.order("u42", "+86 138-0013-8000", "first", "SO-1", "k1").Is(t, http.StatusConflict, "already_ordered")
	s.order("u42", "+86 138-0013-8000", "first", "SO-9", "k9").Is(t, http.StatusForbidden, "limit_reached")
	if again := s.person("erase", "--buyer", "u42", "--lists"); *again.Erased != (adminapi.PersonErased{}) || len(again.Lists) != 0 {
		t.Errorf("the same again erases %+v", again.Erased)
	}
	if other := s.person("show", "--buyer", "u7"); len(other.Lists) != 1 || len(other.Sales) != 1 || len(other.Sales[0].Answers) != 1 {
		t.Errorf("another person has %+v", other)
	}
	s.caughtUp()
	for _, sale := range []string{"first", "second"} {
		s.OK("reconcile", sale)
	}
	for _, entry := range s.Logged("a person is erased as far as the books allow") {
		if raw, err := json.Marshal(entry); err != nil || strings.Contains(string(raw), "u42") || !strings.Contains(string(raw), "ann@") {
			t.Errorf("the log says %s: %v", raw, err)
		}
	}
	if strings.Contains(s.Read("log"), "u42") {
		t.Error("the log has the buyer")
	}
}

// Answers to orders that waited in a queue are found and go too.
func TestPersonInAQueue(t *testing.T) {
	s := openPersonShop(t)
	s.bought("u42", "+86 138-0013-8000", "first", "SO-1", "k1")
	redis, id := s.server.Client(), s.person("show", "--buyer", "u42").Sales[0].Reservations[0].ID
	for key, set := range map[string]func(string) error{
		"reply:" + id:  func(key string) error { return redis.Set(t.Context(), key, "sealed", sitetest.Patience).Err() },
		"replies_size": func(key string) error { return redis.Set(t.Context(), key, 6, sitetest.Patience).Err() },
	} {
		if err := set("stockgate:{first.0}:" + key); err != nil {
			t.Fatal(err)
		}
	}
	if shown := s.OK("person", "show", "--buyer", "u42"); !strings.Contains(shown, "answer of 6 bytes to "+id) {
		t.Errorf("%s", shown)
	}
	if erased := s.OK("person", "erase", "--buyer", "u42", "--yes"); !strings.Contains(erased, "Removed: 2 answers of the shop") {
		t.Errorf("%s", erased)
	}
}

// Bad input is named, without the value: errors are logged.
func TestPersonRefuses(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	for want, args := range map[string][]string{
		"which person?":                     {},
		"--buyer is empty":                  {"--buyer", ""},
		"standard input has no buyer":       {"--buyer", "-"},
		"read this as the phone of a buyer": {"--phone", "+++"},
		"read this as the email of a buyer": {"--email", "not-an-address"},
		"the device must be 1 to 512 bytes": {"--device", strings.Repeat("d", 513)},
		"unknown flag: --name":              {"--name", "alice"},
		"it takes no arguments":             {"u42"},
	} {
		for _, word := range []string{"show", "erase"} {
			if r := s.Run(append([]string{"person", word}, args...)...); r.Status != 2 || !strings.Contains(r.Errors, want) {
				t.Errorf("%s %q: %d, it does not say %q:\n%s%s", word, args, r.Status, want, r.Out, r.Errors)
			}
		}
	}
	if r := sitetest.Run(t, "u42\n1\n", "--address", s.AdminAddress(), "person", "show", "--buyer", "-", "--phone", "-"); r.Status != 2 || !strings.Contains(r.Errors, "standard input is read once") {
		t.Errorf("%+v", r)
	}
	for body, want := range map[string]string{
		``: "name the person", `{"identities":{"name":"secret-name"}}`: "an identity is one of buyer", `{"buyer":"secret-name"}`: `there is no field \"buyer\"`,
		`{"identities":{"buyer":"u42"},"lists":true}`: "are for person/erase",
	} {
		if a := s.Admin("POST", "/stockgate/person/show", body); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, want) || strings.Contains(a.Body, "secret-name") {
			t.Errorf("%s: %d %s, want %q", body, a.Status, a.Body, want)
		}
	}
	if strings.Contains(s.Read("log"), "not-an-address") {
		t.Error("the log has the value")
	}
}
