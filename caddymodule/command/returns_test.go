package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// A file of returns gives units back once, however often it is sent, and says which rows it could not return.
func TestReturnsFromAFile(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	for id, units := range map[string]int64{"a": 3, "b": 2, "c": 1} {
		p.Hold(id, "plain", units, time.Hour)
		p.Must(p.Confirm(t.Context(), "double11", id, reservation.SourceShop, ""))
	}
	p.HoldRef("d", "order-1", "plain")
	p.Must(p.Confirm(t.Context(), "double11", "d", reservation.SourceShop, ""))
	p.Hold("held", "few", 1, time.Hour)
	stock := func(want string) {
		t.Helper()
		if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Cell("plain", "") != want || !b.Balanced {
			t.Errorf("%+v, want %s", b, want)
		}
	}
	stock("100 93 0 0 7")
	file := s.File("returns.csv", "\ufeffOrder No;Ref;SKU;Qty\r\n1;a;plain;1\r\n2;order-1;plain;1.0000\r\n3;b;plain;0\r\n4;nosuch;plain;1\r\n5;held;few;1\r\n6;c;plain;2\r\n7;b;few;1\r\n")
	failed := []string{"not returned: 4\n", ":5: nosuch: the sale has no such reservation", ":6: held: it is held", ":7: c: 2 units of plain are to be returned, but only 1 are left", ":8: b: the order has no few"}
	for _, run := range []struct {
		flag string
		want []string
	}{
		{"--dry-run", []string{"dry run: nothing was changed\nreturned: 2 (2 units)\nalready returned: 0\n"}},
		{"", []string{"returned: 2 (2 units)\nalready returned: 0\n"}},
		{"", []string{"returned: 0 (0 units)\nalready returned: 2\n"}},
		{"--dry-run", []string{"returned: 0 (0 units)\nalready returned: 2\n"}},
	} {
		r := s.Run(append([]string{"returns", "double11", file}, strings.Fields(run.flag)...)...)
		if r.Status != 1 || !strings.Contains(r.Errors, "4 are not returned") {
			t.Errorf("%+v", r)
		}
		for _, want := range append(run.want, failed...) {
			if !strings.Contains(r.Out, want) {
				t.Errorf("%s: it does not say %q:\n%s", run.flag, want, r.Out)
			}
		}
	}
	stock("100 95 0 0 5")
	again := s.File("again.csv", "reservation,sku,quantity,return\na,plain,1,rma-1\n")
	for range 2 { // another return of the same item, by an id of its own
		if r := s.Run("returns", "double11", again, "--no-restock"); r.Status != 0 || r.Errors != "" {
			t.Errorf("%+v", r)
		}
	}
	stock("99 95 0 0 4")
	changed := s.File("changed.csv", "ref,sku,quantity\na,plain,2\n")
	if r := s.Run("returns", "double11", changed); r.Status != 1 || !strings.Contains(r.Out, "this return id was used for another return") {
		t.Errorf("%+v", r)
	}
	whole := s.File("whole.csv", "ref\nb\nc\n")
	for _, want := range []string{"returned: 2 (3 units)\nalready returned: 0\n", "returned: 0 (0 units)\nalready returned: 2\n"} {
		if r := sitetest.Run(t, "order_no\nb\nc\n", "--address", s.AdminAddress(), "returns", "double11", "-", "--column", "ORDER_NO", "--dry-run"); r.Status != 0 || !strings.Contains(r.Out, want) {
			t.Errorf("%+v", r)
		}
		if r := s.Run("returns", "double11", whole); r.Status != 0 || !strings.Contains(r.Out, want) {
			t.Errorf("%+v", r)
		}
	}
	stock("99 98 0 0 1")
}

// A file that cannot be meant is an error that names its line, and nothing comes back.
func TestReturnsAreStrict(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	for text, want := range map[string]string{
		"":                                           "has no returns",
		"ref,sku,quantity\n":                         "has no returns",
		"a,plain,1\n":                                ":1: which column has the reservation ids or refs?",
		"id,sku,quantity\na,plain,1\n":               ":1: which column has the reservation ids or refs?",
		"ref,sku\na,plain\n":                         ":1: there is a column sku and none with the quantity",
		"ref,qty\na,1\n":                             ":1: there is a column with the quantity and none with the sku",
		"ref,sku,qty\na,plain,1\n\n,plain,1\n":       ":4: the row names no order",
		"ref,sku,qty\na b,plain,1\n":                 `:2: "a b" is no reservation id or ref`,
		"ref,sku,qty\na,plain,\n":                    `:2: "" is no number of units`,
		"ref,sku,qty\na,plain,-1\n":                  `:2: "-1" is no number of units`,
		"ref,sku,qty\na,plain,1.5\n":                 `:2: "1.5" is no number of units`,
		"ref,sku,qty\na,,1\n":                        `:2: "1" units, and no SKU`,
		"ref,sku,qty\na,plain,1\na,plain,1\n":        ":3: line 2 has the same order and item",
		"ref\na\na\n":                                ":3: line 2 has the same order and item",
		"ref,return\na,x y\n":                        `:2: "x y" is no id of a return`,
		"ref,sku,qty,return\na,p,1,x\na,p,1,x\n":     ":3: the return that begins at line 2 has this item already",
		"ref,sku,qty,return\na,p,1,x\nb,,,\na,,,x\n": ":4: line 2 has the same return of the same order",
		"ref,sku,qty\n\"a,plain,1\n":                 "parse error on line 2",
	} {
		r := s.Run("returns", "double11", s.File("returns.csv", text))
		if r.Status == 0 || r.Out != "" || !strings.Contains(r.Errors, want) {
			t.Errorf("%q: %+v, want %q", text, r, want)
		}
	}
	if r := s.Run("returns", "nosuch", s.File("returns.csv", "ref\na\n")); r.Status != 1 || !strings.Contains(r.Errors, "nosuch") {
		t.Errorf("%+v", r)
	}
	for body, want := range map[string]string{
		`{}`:                                    "returns must be 1 to 500",
		`{"returns":[{"name":"a b","id":"x"}]}`: "a name must be",
		`{"returns":[{"name":"a"}]}`:            "the id of a return must be",
		`{"returns":[{"name":"a","id":"x","lines":[{"sku":"p"}]}]}`: "returns[0]: a line has a sku and 1 unit or more",
	} {
		if a := s.Admin("POST", "/stockgate/sales/double11/returns", body); a.Status != 400 || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
}
