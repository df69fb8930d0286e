package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/sale"
)

// saleIn reads a sale file that a command has written.
func saleIn(t *testing.T, name string) *sale.Sale {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sale.ParseFrom(text, sale.Sources{Items: func(items string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(name), items)) }})
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return s
}

// A sale file is written from flags, from answers on a terminal, and never over another.
func TestSaleNew(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	flags := func(name string, more ...string) []string {
		return append([]string{"sale", "new", s.Path(name), "--starts", "2087-11-11T00:00", "--ends", "2087-11-12T00:00:00+08:00"}, more...)
	}
	want, err := sale.Parse([]byte("id: flash\nstarts_at: 2087-11-11T00:00:00+08:00\nends_at: 2087-11-12T00:00:00+08:00\ntimezone: Asia/Shanghai\n" +
		"items: [{sku: A=1, stock: 100, max: 2}, {sku: \"020\", stock: 0}]\nlimits: [{per: buyer, every: sale, max: 2, count: units}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	args := flags("flash.yaml", "--timezone", "Asia/Shanghai", "--item", "A=1=100:2", "--item", "020=0", "--per-buyer", "2")
	if out := s.OK(args...); !strings.Contains(out, "next: caddy stockgate sale apply ") || !saleIn(t, s.Path("flash.yaml")).Equal(want) {
		t.Errorf("it says %s and writes %s", out, s.Read("flash.yaml"))
	}
	s.OK("sale", "apply", s.Path("flash.yaml"))
	out := answerOnTerminal(t, s, "flash\nNowhere\nAsia/Shanghai\ntoday\n2087-11-11T00:00\n2087-11-10T00:00\n2087-11-12T00:00\nA=1 100 2\nA=1 3\n020 0\n\n0\n2", "sale", "new", s.Path("asked.yaml"))
	if !saleIn(t, s.Path("asked.yaml")).Equal(want) || !strings.Contains(out, "[asked]") || !strings.Contains(out, "no time zone \"Nowhere\"") || !strings.Contains(out, "A=1 is an item already") {
		t.Errorf("asked, it says %s and writes %s", out, s.Read("asked.yaml"))
	}
	s.File("items.csv", "sku;stock;max\r\nA=1;100;2\r\n020;0;\r\n")
	s.OK(flags("table.yaml", "--timezone", "Asia/Shanghai", "--items", s.Path("items.csv"), "--per-buyer", "2")...)
	table := saleIn(t, s.Path("table.yaml"))
	if table.ID = "flash"; !table.Equal(want) || !strings.Contains(s.Read("table.yaml"), "items: \"items.csv\"") {
		t.Errorf("with a table it writes %s", s.Read("table.yaml"))
	}
	if out := s.OK("sale", "apply", "--dry-run", s.Path("table.yaml")); !strings.Contains(out, "new item A=1: stock 100") {
		t.Errorf("its apply says %s", out)
	}
	for says, args := range map[string][]string{
		"is there already, and is not overwritten":                      flags("flash.yaml", "--item", "a=1"),
		"nothing can be asked: give --starts, --ends, --item or --item": {"sale", "new", s.Path("n.yaml")},
		"the name must end in .yaml":                                    flags("n.csv", "--item", "a=1"),
		"--id: must be 1 to 64":                                         flags("n.yaml", "--item", "a=1", "--id", "N"),
		"--timezone: there is no time zone":                             flags("n.yaml", "--item", "a=1", "--timezone", "Local"),
		"--item: \"a\" is no item and its stock":                        flags("n.yaml", "--item", "a"),
		"--item: \"x\" is no number of units":                           flags("n.yaml", "--item", "a=x"),
		"--item: \"0\" is no number of units for one order":             flags("n.yaml", "--item", "a=1:0"),
		"--item: a is an item already":                                  flags("n.yaml", "--item", "a=1", "--item", "a=2"),
		"give the items in one way":                                     flags("n.yaml", "--item", "a=1", "--items", "b.csv"),
		"no such file":                                                  flags("n.yaml", "--items", s.Path("none.csv")),
		"ends in .csv":                                                  flags("n.yaml", "--items", s.Path("flash.yaml")),
		"--per-buyer: \"0\" is no number of units":                      flags("n.yaml", "--item", "a=1", "--per-buyer", "0"),
		"--ends: must be later than the start":                          {"sale", "new", s.Path("n.yaml"), "--starts", "2087-11-11T00:00", "--ends", "2087-11-11T00:00", "--item", "a=1"},
		"--starts: must be a time such as":                              {"sale", "new", s.Path("n.yaml"), "--starts", "2087-11-11", "--ends", "2087-11-12T00:00", "--item", "a=1"},
	} {
		if r := s.Run(args...); r.Status != 2 || !strings.Contains(r.Errors, says) {
			t.Errorf("%q: %+v, want %q", args, r, says)
		}
	}
	if _, err := os.Stat(s.Path("n.yaml")); err == nil {
		t.Error("a refused sale is written")
	}
	if out := answerOnTerminal(t, s, "flash\n", "sale", "new", s.Path("n.yaml"), "--item", "a=1"); !strings.Contains(out, "nothing was written") {
		t.Errorf("answers that end say %s", out)
	}
}

// The file of a sale is written for another one, with the units that it loads.
func TestSaleClone(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	old := "id: spring\nstarts_at: 2027-03-27T12:00:00+01:00\nends_at: 2027-03-28T12:00:00+02:00\ntimezone: Europe/Berlin\nmissing: skip\nunpaid: off\nmax_hold: 2h\n" +
		"items:\n  - {sku: A, ids: [\"1\"], stock: 5, max: 3}\n  - {sku: B, regions: {north: 1, \"so'uth\": 2}}\n  - {sku: set, components: [{sku: A, units: 2}]}\n" +
		"limits:\n  - {per: [buyer, phone], every: day, max: 2, count: units, sku: A, shadow: true}\n"
	s.OK("sale", "apply", s.File("old.yaml", old))
	s.OK("stock", "add", "spring", "A", "7")
	to := s.Path("new.yaml")
	out := s.OK("sale", "clone", "spring", "autumn", "--starts", "2087-09-01T12:00", "--file", to)
	want, err := sale.Parse([]byte(strings.NewReplacer("id: spring", "id: autumn", "2027-03-27T12:00:00+01:00", "2087-09-01T12:00:00+02:00", "2027-03-28T12:00:00+02:00", "2087-09-02T12:00:00+02:00").Replace(old)))
	if err != nil {
		t.Fatal(err)
	}
	if got := saleIn(t, to); !got.Equal(want) || !strings.Contains(out, "from 2087-09-01T12:00:00+02:00 to 2087-09-02T12:00:00+02:00, with 3 items") {
		t.Errorf("it says %s, and writes %s", out, s.Read("new.yaml"))
	}
	var list struct{ Sales []json.RawMessage }
	if list = sitetest.Do[struct{ Sales []json.RawMessage }](s, "GET", "/stockgate/sales", ""); len(list.Sales) != 1 {
		t.Error("the clone is applied")
	}
	if out := answerOnTerminal(t, s, "2087-09-01T12:00\n", "sale", "clone", "spring", "autumn", "--file", s.Path("asked.yaml")); !saleIn(t, s.Path("asked.yaml")).Equal(want) || !strings.Contains(out, "[2087-09-02T12:00:00]") {
		t.Errorf("asked, it says %s", out)
	}
	for says, args := range map[string][]string{
		"is not overwritten":                                 {"clone", "spring", "autumn", "--starts", "2087-09-01T12:00", "--file", to},
		"nothing can be asked: give --starts":                {"clone", "spring", "autumn", "--file", s.Path("n.yaml")},
		"\"Autumn\" as the new id: must be":                  {"clone", "spring", "Autumn"},
		"it takes 2 arguments":                               {"clone", "spring"},
		"no such sale":                                       {"clone", "winter", "autumn", "--starts", "2087-09-01T12:00", "--file", s.Path("n.yaml")},
		"--starts: there is no such time in Europe/Berlin":   {"clone", "spring", "autumn", "--starts", "2087-03-30T02:30", "--file", s.Path("n.yaml")},
		"--ends: must be later than the start, 2087-09-01T1": {"clone", "spring", "autumn", "--starts", "2087-09-01T12:00", "--ends", "2087-09-01T11:00", "--file", s.Path("n.yaml")},
	} {
		if r := s.Run(append([]string{"sale"}, args...)...); r.Status == 0 || !strings.Contains(r.Errors, says) {
			t.Errorf("%q: %+v, want %q", args, r, says)
		}
	}
}
