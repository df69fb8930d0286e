package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// emptied is a site whose Redis was emptied while it sold.
func emptied(t *testing.T) (*sitetest.Site, *redistest.Server, map[string]any) {
	t.Helper()
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	useGate(s, map[string]any{"other_items": "pass"})
	s.Load(app)
	openToBidders(s)
	becomes(s, "sold", bid{buyer: "ann", skus: "plain"})
	becomes(s, "passed", bid{buyer: "ann", skus: "tea"})
	s.UntilScraped(map[string]string{sitetest.LostPlain: "0", `stockgate_balanced{sale="double11"}`: "1"})
	sitetest.EmptyRedis(t, server)
	return s, server, app
}

// A sale that Redis has lost is unavailable to buyers and on the shop's pages, an error in
// every command of the operator, and it is not loaded again by mistake.
func TestEmptiedRedis(t *testing.T) {
	s, _, app := emptied(t)
	lost := func(when, mixed string) {
		t.Helper()
		becomes(s, "unavailable", bid{buyer: "ann", skus: "plain"})
		for skus, want := range map[string]string{"tea": "passed", "20002001": "unavailable", "plain tea": mixed, "PLAIN": mixed} {
			if got := bidFor(s, bid{buyer: "ann", skus: skus}); got != want {
				t.Errorf("%s, %s: %s, want %s", when, skus, got, want)
			}
		}
		s.Eventually("the status, "+when, func() (string, bool) { // the overview is remembered for a moment
			a := s.Get("/sales/double11/items/plain")
			return fmt.Sprint(a.Status, a.Body), a.Status == 503 && a.Header.Get("Retry-After") != ""
		})
		s.UntilScraped(map[string]string{sitetest.LostPlain: "1", `stockgate_balanced{sale="double11"}`: "0"})
		if found := s.Logged("redis has lost a sale: buyers hear `unavailable`"); len(found) == 0 || found[len(found)-1]["sale"] != "double11" || found[0]["level"] != "error" {
			t.Errorf("%s, the log has %v", when, found)
		}
		if r := s.Run("doctor"); r.Status != 1 || !strings.Contains(r.Out, "redis has lost sale double11: restore it with `caddy stockgate rebuild double11") {
			t.Errorf("%s, the doctor says %d %s", when, r.Status, r.Out)
		}
		if out := s.OK("sale", "list"); !strings.Contains(out, "double11  lost") {
			t.Errorf("%s, the list: %s", when, out)
		}
		for _, command := range [][]string{
			{"sale", "apply", s.File("sale.yaml", sitetest.ListsSale)}, {"sale", "apply", s.File("sale.yaml", sitetest.ListsSale), "--dry-run"},
			{"sale", "show", "double11"}, {"sale", "open", "double11"}, {"stock", "add", "double11", "plain", "1"}, {"holds", "double11"},
		} {
			if r := s.Run(command...); r.Status != 1 || !strings.Contains(r.Errors, "redis has lost sale double11") {
				t.Errorf("%s, %q: %d %s %s", when, command, r.Status, r.Out, r.Errors)
			}
		}
	}
	lost("the edge that sold it", "unknown_item") // it still knows what the sale lists
	s.Load(nil)
	s.Load(app)
	lost("after a start", "unavailable")
	s.OK("sale", "apply", s.File("sale.yaml", sitetest.ListsSale), "--new")
	s.OK("sale", "open", "double11")
	becomes(s, "sold", bid{buyer: "ann", skus: "plain"})
	s.UntilScraped(map[string]string{sitetest.LostPlain: "0", `stockgate_balanced{sale="double11"}`: "1"})
}

// An edge that knows of no sale lets no item pass as unlisted: its Redis may have been
// emptied. The first sale ends that, and needs no flag.
func TestNothingIsOtherWithoutASale(t *testing.T) {
	s, server, app := emptied(t)
	s.Load(nil)
	if err := os.RemoveAll(s.Path("storage")); err != nil {
		t.Fatal(err)
	}
	sitetest.EmptyRedis(t, server)
	s.Load(app)
	s.Eventually("ready", func() (string, bool) {
		text := s.Run("doctor").Out
		return text, strings.Contains(text, "this edge may sell")
	})
	for _, skus := range []string{"plain", "tea"} {
		if got := bidFor(s, bid{buyer: "ann", skus: skus}); got == "passed" || got == "sold" {
			t.Errorf("%s is %s", skus, got)
		}
	}
	if r := s.Run("doctor"); r.Status != 1 || !strings.Contains(r.Out, "lets nothing pass, because it is not known what the sales list") {
		t.Errorf("the doctor says %s", r.Out)
	}
	s.OK("sale", "apply", s.File("sale.yaml", strings.ReplaceAll(sitetest.ListsSale, "double11", "first")))
	becomes(s, "passed", bid{buyer: "ann", skus: "tea"})
	if got := bidFor(s, bid{buyer: "ann", skus: "plain"}); got != "not_started" {
		t.Errorf("plain of the draft is %s", got)
	}
}

// A new edge misses a sale that nothing but the ledger has, and its file is not loaded.
func TestOnlyTheLedgerRemembers(t *testing.T) {
	server, app := sitetest.Redis(t)
	file := filepath.Join(t.TempDir(), "ledger.db")
	app["ledger"] = map[string]any{"driver": "sqlite", "file": file}
	s := openShop(t, app, map[string]any{"other_items": "pass"})
	openToBidders(s)
	l, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Eventually("in the ledger", func() (string, bool) {
		at, err := l.Position(t.Context(), "double11")
		return "", err == nil && at.Seq >= 3
	})
	s.Load(nil)
	if err := os.RemoveAll(s.Path("storage")); err != nil {
		t.Fatal(err)
	}
	sitetest.EmptyRedis(t, server)
	s.Load(app)
	if r := s.Run("sale", "apply", s.File("sale.yaml", sitetest.ListsSale)); r.Status != 1 || !strings.Contains(r.Errors, "rebuild double11 --from ledger") {
		t.Errorf("applied: %d %s %s", r.Status, r.Out, r.Errors)
	}
	s.UntilScraped(map[string]string{sitetest.LostPlain: "1"})
	for _, skus := range []string{"plain", "tea"} {
		if got := bidFor(s, bid{buyer: "ann", skus: skus}); got != "unavailable" {
			t.Errorf("%s is %s", skus, got)
		}
	}
	s.OK("rebuild", "double11", "--from", "ledger", "--open")
	becomes(s, "sold", bid{buyer: "ann", skus: "plain"})
	becomes(s, "passed", bid{buyer: "ann", skus: "tea"})
}

// The shop is not told that a reservation of a lost sale never existed.
func TestAPIOfALostSale(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, nil)
	s.Gates = []any{map[string]any{"handler": "stockgate_api", "keys": []string{sitetest.APIKey}}}
	s.Load(app)
	s.OpenSale()
	sitetest.NewShopper(t, server).Hold("r", "plain", 1, sitetest.Patience)
	if a := s.API("GET", "/reservations/never", ""); a.Status != 404 {
		t.Errorf("a reservation that never was: %d %s", a.Status, a.Body)
	}
	sitetest.EmptyRedis(t, server)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/reservations/r", ""},
		{"GET", "/reservations/r?sale=double11", ""},
		{"POST", "/reservations/r/confirm", ""},
		{"POST", "/reservations/r/confirm", `{"sale":"double11"}`},
		{"POST", "/reservations/r/release", `{"sale":"double11"}`},
		{"POST", "/reservations/r/extend", `{"sale":"double11","hold_for":"5m"}`},
		{"POST", "/reservations/r/return", `{"sale":"double11","id":"x"}`},
	} {
		if a := s.API(c.method, c.path, c.body); a.Status != 503 || !strings.Contains(a.Body, "has lost the sale") {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, a.Status, a.Body)
		}
	}
	if a := s.API("GET", "/reservations/r?sale=another", ""); a.Status != 404 {
		t.Errorf("in a sale that never was: %d %s", a.Status, a.Body)
	}
}
