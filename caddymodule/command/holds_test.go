package command_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func TestCommandsResolveHolds(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Doubts(time.Hour, map[string]string{"a": "timeout", "b": "status_500", "c": "timeout", "d": "timeout", "e": "timeout"}, "a", "b", "c", "d", "e")
	p.HoldRef("f", "order-1", "plain")
	p.Hold("late", "few", 3, time.Hour)
	p.Must(p.Release(t.Context(), "double11", "late", reservation.SourceUnsent, "x"))
	p.Hold("others", "few", 3, time.Hour)

	shows := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("it does not say %q:\n%s", w, out)
			}
		}
	}
	list := s.OK("holds", "double11", "--cause", "timeout", "--older", "0s")
	if got := strings.Count(list, "\n"); got != 5 || !regexp.MustCompile(`(?m)^a +double11 +in_doubt +\d+s +\d{4}-.* 1×plain +timeout +- +b$`).MatchString(list) {
		t.Errorf("%s", list)
	}
	shows(s.OK("holds", "--state", "held"), "f            double11  held", "order-1")
	shows(s.OK("holds", "double11", "--older", "1h"), "(none)")

	r := s.Run("holds", "double11", "--cause", "status_500", "--release")
	if r.Status != 1 || !strings.Contains(r.Errors, "1 are not released") {
		t.Errorf("%+v", r)
	}
	shows(r.Out, "released: 0\n", "the shop may still sell them (wait for their deadlines, or --force): 1\n  b\n")
	shows(s.OK("holds", "double11", "--cause", "status_500", "--release", "--force", "--dry-run"), "dry run: nothing was changed\nreleased: 1\n")
	shows(s.OK("holds", "double11", "--cause", "status_500", "--release", "--force"), "released: 1\nalready released: 0\n")
	shows(s.OK("holds", "double11", "--cause", "nothing", "--confirm"), "confirmed: 0\n")

	orders := s.File("orders.csv", "\ufeffOrder No;Amount;Reservation\r\n1;10,00;a\r\n2;20,00;\r\n3;5,00;\"order-1\"\r\n4;1,00;nosuch\r\n5;1,00;late\r\n6;1,00;a\r\n")
	r = s.Run("holds", "double11", "--confirm-from", orders, "--dry-run")
	if r.Status != 0 || r.Errors != "" {
		t.Errorf("%+v", r)
	}
	shows(r.Out, "dry run: nothing was changed\nconfirmed: 2\nalready confirmed: 0\nnot found: 1\n  nosuch\nended before: confirmed if their units are still there: 1\n  late\nin doubt and not in the file: 3\n")
	r = s.Run("holds", "double11", "--confirm-from", orders)
	if r.Status != 1 || !strings.Contains(r.Errors, "2 are not confirmed") {
		t.Errorf("%+v", r)
	}
	shows(r.Out, "confirmed: 2\nalready confirmed: 0\nnot found: 1\n  nosuch\ntheir units are sold to others: refund needed: 1\n  late\nin doubt and not in the file: 3\n")

	bare := s.File("bare", "a\n\nc\n")
	shows(s.OK("holds", "double11", "--confirm-from", bare), "confirmed: 1\nalready confirmed: 1\nin doubt and not in the file: 2\n")
	columns := s.File("columns.csv", "id,order_no\nzzz,d\n")
	shows(s.OK("holds", "double11", "--confirm-from", columns, "--column", "ORDER_NO"), "confirmed: 1\n")
	if r := sitetest.Run(t, "id\ne\n", "--address", s.AdminAddress(), "holds", "double11", "--confirm-from", "-", "--json"); r.Status != 0 || !strings.HasPrefix(r.Out, `{"matched":1,"changed":1,`) {
		t.Errorf("%+v", r)
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Cell("plain", "") != "100 95 0 0 5" || !b.Balanced {
		t.Errorf("%+v", b)
	}
}

func TestCommandsHoldsAreStrict(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	var many strings.Builder
	for i := range 1_000_001 {
		fmt.Fprintf(&many, "%d\n", i)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"holds", "double11", "other"}, 2, "it takes at most one argument"},
		{[]string{"holds", "nosuch"}, 1, "no such sale: nosuch"},
		{[]string{"holds", "double11", "--older", "10"}, 2, "older must be whole hours"},
		{[]string{"holds", "double11", "--release"}, 2, "which holds? Give cause or older, or all"},
		{[]string{"holds", "double11", "--release=false"}, 2, "say --release or leave it out"},
		{[]string{"holds", "--release", "--all"}, 2, "resolving needs the sale"},
		{[]string{"holds", "double11", "--release", "--confirm"}, 2, "exclude each other"},
		{[]string{"holds", "double11", "--confirm", "--all", "--force"}, 2, "--force does not go with this"},
		{[]string{"holds", "double11", "--force"}, 2, "--force does not go with this"},
		{[]string{"holds", "double11", "--dry-run"}, 2, "--dry-run does not go with this"},
		{[]string{"holds", "double11", "--confirm-from", "x", "--cause", "x"}, 2, "--cause does not go with this"},
		{[]string{"holds", "double11", "--confirm-from", s.Path("missing")}, 2, "no such file"},
		{[]string{"holds", "double11", "--confirm-from", s.File("empty", "\n\n")}, 1, "empty names no order"},
		{[]string{"holds", "double11", "--confirm-from", s.File("header", "id\n")}, 1, "header names no order"},
		{[]string{"holds", "double11", "--confirm-from", s.File("columns", "order,amount\n1,2\n")}, 2, "which column"},
		{[]string{"holds", "double11", "--confirm-from", s.File("column", "id\n1\n"), "--column", "order"}, 2, `no column "order"`},
		{[]string{"holds", "double11", "--confirm-from", s.File("space", "id\nx\na b\n")}, 1, `space:3: "a b" is no reservation id`},
		{[]string{"holds", "double11", "--confirm-from", s.File("quote", "id\n\"x\n")}, 1, "quote: "},
		{[]string{"holds", "double11", "--confirm-from", s.File("many", many.String())}, 1, "more than 1000000 orders"},
	} {
		r := s.Run(c.args...)
		if r.Status != c.status || r.Out != "" {
			t.Errorf("%q: %d, not %d\n%s%s", c.args, r.Status, c.status, r.Out, r.Errors)
		}
		if !strings.HasPrefix(r.Errors, "caddy stockgate") || strings.Count(r.Errors, "\n") != 1 || !strings.Contains(r.Errors, c.says) {
			t.Errorf("%q: %q does not say %q in one line", c.args, r.Errors, c.says)
		}
	}
}

func TestCommandsReturnAndExtend(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("r", "plain", 5, time.Minute)
	if out := s.OK("reservation", "extend", "r", "10m"); !strings.HasPrefix(out, "r is held until 2") {
		t.Error(out)
	}
	s.OK("reservation", "confirm", "r")
	for _, step := range []struct{ args, says string }{
		{"plain=1 --id one", "r: 1×plain returned of 5×plain (id one)\n"},
		{"plain=1 --id one", "r: 1×plain returned of 5×plain (id one)\n"},
		{"plain=1 --no-restock", "r: 2×plain returned of 5×plain (id 0"},
		{"", "r: 5×plain returned of 5×plain (id 0"},
	} {
		out := s.OK(append([]string{"reservation", "return", "r"}, strings.Fields(step.args)...)...)
		if !strings.HasPrefix(out, step.says) {
			t.Errorf("%s: %s", step.args, out)
		}
	}
	if out := s.OK("reservation", "show", "r"); !strings.Contains(out, "returned        5×plain\n") {
		t.Error(out)
	}
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"reservation return", 2, "it takes a reservation"},
		{"reservation return r plain", 2, `"plain" is not a SKU and a number of units`},
		{"reservation return r plain=0", 2, `"plain=0" is not a SKU`},
		{"reservation return r =1", 2, `"=1" is not a SKU`},
		{"reservation return r --region north", 2, "--region is for the units that are named"},
		{"reservation return r plain=1", 1, "to be returned"},
		{"reservation return nosuch", 1, "no such reservation"},
		{"reservation extend r", 2, "it takes 2 arguments"},
		{"reservation extend r 10", 2, "hold_for must be whole hours"},
		{"reservation extend r 10m", 1, "the reservation is confirmed"},
	} {
		r := s.Run(strings.Fields(c.args)...)
		if r.Status != c.status || strings.Count(r.Errors, "\n") != 1 || !strings.Contains(r.Errors, c.says) {
			t.Errorf("%s: %d %q", c.args, r.Status, r.Errors)
		}
	}
	server.Stop()
	if r := s.Run("reservation", "return", "r"); r.Status != 3 || !strings.Contains(r.Errors, "it is made once") {
		t.Errorf("%+v", r)
	}
}
