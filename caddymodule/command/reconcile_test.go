package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// An operator reads what differs and repairs it; the exit status reports whether differences
// are left.
func TestCommandReconcile(t *testing.T) {
	server, app := sitetest.Redis(t)
	app["ledger"] = map[string]any{"driver": "sqlite", "file": filepath.Join(t.TempDir(), "ledger.db")}
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Doubts(time.Hour, map[string]string{"a": "timeout", "b": "status_500"}, "a", "b")
	p.HoldRef("f", "order-1", "plain")
	p.Must(p.Confirm(t.Context(), "double11", "f", reservation.SourceAnswer, "status_201"))
	p.Hold("given", "few", 1, time.Hour)
	p.Must(p.Release(t.Context(), "double11", "given", reservation.SourceShop, "x"))

	said := func(r sitetest.Ran, status int, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(r.Out+r.Errors, w) {
				t.Errorf("it does not say %q", w)
			}
		}
		if r.Status != status {
			t.Errorf("the status is %d, want %d", r.Status, status)
		}
		if t.Failed() {
			t.Fatalf("%s%s", r.Out, r.Errors)
		}
	}
	s.Eventually("the ledger has the sale", func() (string, bool) {
		r := s.Run("reconcile", "double11")
		return r.Out + r.Errors, r.Status == 0 && strings.Contains(r.Out, "redis was compared with the ledger and the journal up to entry ") && strings.Contains(r.Out, "all agrees\n")
	})
	c := server.Client()
	const tag = "stockgate:{double11.0}:"
	if err := c.HDel(t.Context(), tag+"records", "a").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.HSet(t.Context(), tag+"bindings", "r|order-1", "stranger").Err(); err != nil {
		t.Fatal(err)
	}
	said(s.Run("reconcile", "double11"), 1, "reservation a is missing from redis; it is in_doubt\n  cause:  something other than stockgate has changed or deleted it in redis\n  repair: set the record to what the ledger says\n",
		"the ref order-1 finds stranger in redis, and must find f\n",
		"differences: 2, repaired: 0\n", "differences that are left: 2")
	said(s.Run("reconcile", "double11", "--repair"), 0, "  done:   set the record to what the ledger says\n", "differences: 2, repaired: 2\n")
	var report recovery.Report
	if r := s.Run("reconcile", "double11", "--repair", "--json"); r.Status != 0 || json.Unmarshal([]byte(r.Out), &report) != nil || !report.Agrees || report.Found != 0 {
		t.Errorf("%+v", r)
	}
	if logged := s.Logged("sale repaired"); len(logged) != 1 || logged[0]["repaired"] != 2.0 {
		t.Errorf("the log says %v", logged)
	}

	orders := s.File("orders.csv", "order,reservation\n1,a\n2,given\n3,nosuch\n")
	later := time.Now().Add(time.Minute)
	shop := []string{
		"reservation a is in doubt, and the shop has the order\n", "reservation given is released, and the shop has the order\n",
		"the shop has an order nosuch, and no reservation goes by this name\n",
	}
	touch(t, orders, later)
	said(s.Run("reconcile", "double11", "--shop", orders), 1, append(shop, "reservation f is confirmed, and the shop does not have the order\n", "differences: 4, repaired: 0\n")...)
	touch(t, orders, time.Now().Add(-time.Hour)) // what was sold after it
	said(s.Run("reconcile", "double11", "--shop", orders), 1, append(shop, "differences: 3, repaired: 0\n")...)
	said(s.Run("reconcile", "double11", "--shop", orders, "--repair"), 1, append(shop, "differences: 3, repaired: 1\n")...)
	if r, err := p.ReservationIn(t.Context(), "double11", "a"); err != nil || r.State != record.Confirmed {
		t.Errorf("a is %+v, error %v", r, err)
	}
	lines := s.File("orders.jsonl", "{\"ref\": \"order-1\"}\n\n{\"ref\": \"a\", \"more\": 1}\n{\"ref\": null}\n")
	touch(t, lines, later)
	said(s.Run("reconcile", "double11", "--shop", lines), 0, "note: the units of the shop's orders are not compared, because the list has none", "all agrees\n")

	said(s.Run("reconcile"), 2, "it takes one argument")
	said(s.Run("reconcile", "nosuch"), 1, "no such sale: nosuch")
	said(s.Run("reconcile", "double11", "--probe"), 2, "no gate has a probe")
	said(s.Run("reconcile", "double11", "--probe", "--shop", orders), 2, "do not go together")
	said(s.Run("reconcile", "double11", "--column", "x"), 2, "--column, --quantity and --sku go with --shop")
	said(s.Run("reconcile", "double11", "--sku", "x"), 2, "--column, --quantity and --sku go with --shop")
	rows := s.File("units.csv", "order_no,sku,qty\norder-1,plain,2.0000\norder-1,plain,16\na,plain,1\n")
	touch(t, rows, later)
	said(s.Run("reconcile", "double11", "--shop", rows, "--column", "order_no"), 1, "the shop has sold 18 units of plain with the order order-1, and its reservation f has 1\n", "differences: 1, repaired: 0\n")
	said(s.Run("reconcile", "double11", "--shop", rows, "--column", "order_no", "--quantity", "count"), 2, "it has no column \"count\", as --quantity says")
	jsonRows := s.File("units.jsonl", "{\"ref\": \"order-1\", \"quantity\": 18}\n{\"ref\": \"a\", \"quantity\": 1}\n")
	touch(t, jsonRows, later)
	said(s.Run("reconcile", "double11", "--shop", jsonRows), 1, "the shop has sold 18 units with the order order-1, and its reservation f has 1\n", "differences: 1, repaired: 0\n")
	said(s.Run("reconcile", "double11", "--shop", s.File("odd.csv", "ref,quantity\na,two\n")), 1, "odd.csv:2: \"two\" is no number of units")
	said(s.Run("reconcile", "double11", "--shop", s.File("gap.jsonl", "{\"ref\": \"a\", \"qty\": 1}\n{\"ref\": \"b\"}\n")), 1, "gap.jsonl:2: it has no quantity")
	for _, units := range []string{`{"x":{"plain":1}}`, `{"a":{"plain":-1}}`} {
		if a := s.Admin("POST", "/stockgate/sales/double11/reconcile", `{"orders":["a"],"units":`+units+`}`); a.Status != 400 || !strings.Contains(a.Body, "units") {
			t.Errorf("%+v", a)
		}
	}
	said(s.Run("reconcile", "double11", "--shop", s.File("bad", "{\"x\": 1}\n")), 2, "bad:1: which field has the reservation id or ref?")
	said(s.Run("reconcile", "double11", "--shop", s.File("worse", "{\"id\": \"a\"}\nb\n")), 1, "worse:2: it is no JSON object")
	if a := s.Admin("POST", "/stockgate/sales/double11/reconcile", `{"repairs":true}`); a.Status != 400 {
		t.Errorf("%+v", a)
	}
	if a := s.Admin("POST", "/stockgate/sales/double11/reconcile", `{"orders":["a"],"probe":true}`); a.Status != 400 {
		t.Errorf("%+v", a)
	}
}

// touch says when a file was written.
func touch(t *testing.T, file string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}
