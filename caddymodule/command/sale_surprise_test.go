package command_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// A change of an open sale that is probably a slip of the pen is asked about on a terminal, and needs --yes in a
// script.
func TestSurprisingChanges(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	const sale = "id: flash\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: plain, stock: 100}\n  - {sku: two, regions: {north: 10, south: 20}}\n" +
		"limits:\n  - {per: buyer, every: sale, max: 2, count: units}\n"
	first := s.File("sale.yaml", sale)
	s.OK("sale", "apply", first)
	changed := func(old, new string) string { return s.File("changed.yaml", strings.Replace(sale, old, new, 1)) }
	// a sale that is not open yet may be anything
	s.OK("sale", "apply", changed("stock: 100", "stock: 1000"))
	s.OK("sale", "apply", first)
	s.OK("sale", "open", "flash")

	for _, c := range []struct{ old, new, want string }{
		{"stock: 100", "stock: 1000", "plain has 1000 units instead of 100"},
		{"south: 20", "south: 200", "two in south has 200 units instead of 20"},
		{"2020-01-01", "2080-01-01", "nothing is sold until 2080-01-01 00:00:00 +0000, to which its start moves"},
		{"2090-01-01", "2021-01-01", "it ends at once: its end moves to 2021-01-01 00:00:00 +0000"},
		{"  - {per: buyer, every: sale, max: 2, count: units}\n", "  - {per: buyer, every: order, max: 2, count: units}\n", "nothing limits units per buyer and sale any more"},
		{"max: 2, count: units}", "max: 20, count: units}", "the limit of units per buyer and sale is 20 instead of 2"},
		{"max: 2, count: units}", "max: 2, count: units, shadow: true}", "nothing limits units per buyer and sale any more"},
	} {
		file := changed(c.old, c.new)
		if dry := s.OK("sale", "apply", file, "--dry-run"); !strings.Contains(dry, "warning: "+c.want) || !strings.Contains(dry, "nothing was changed") {
			t.Errorf("%s: the dry run says %s", c.new, dry)
		}
		r := s.Run("sale", "apply", file)
		if r.Status != 2 || !strings.Contains(r.Errors, "flash is open, and with this file "+c.want) || !strings.Contains(r.Errors, "--yes") {
			t.Errorf("%s: %+v", c.new, r)
		}
		if out := s.OK("sale", "apply", first); !strings.Contains(out, "no change") {
			t.Errorf("%s: it was changed: %s", c.new, out)
		}
	}
	zoned := s.File("zoned.yaml", strings.Replace(strings.Replace(sale, "items:", "timezone: Asia/Shanghai\nitems:", 1), "id: flash", "id: zoned", 1))
	s.OK("sale", "apply", zoned)
	s.OK("sale", "open", "zoned")
	if dry := s.OK("sale", "apply", s.File("moved.yaml", strings.NewReplacer("items:", "timezone: Asia/Shanghai\nitems:", "id: flash", "id: zoned", "2020-01-01", "2080-01-01").Replace(sale)), "--dry-run"); !strings.Contains(dry, "until 2080-01-01 08:00:00 +0800,") {
		t.Errorf("in the sale's time zone: %s", dry)
	}
	s.OK("sale", "close", "zoned")
	for _, harmless := range [][2]string{{"stock: 100", "stock: 999"}, {"2090", "2091"}, {"max: 2,", "max: 3,"}} {
		s.OK("sale", "apply", changed(harmless[0], harmless[1]))
		s.OK("sale", "apply", first)
	}

	huge := changed("stock: 100", "stock: 5000")
	if out := answerOnTerminal(t, s, "no", "sale", "apply", huge); !strings.Contains(out, "Type flash to go on") || !strings.Contains(out, "nothing was changed") {
		t.Errorf("on a terminal, answered by no: %s", out)
	}
	if out := answerOnTerminal(t, s, "flash", "sale", "apply", huge); !strings.Contains(out, "stock 100") {
		t.Errorf("on a terminal, answered by the sale's name: %s", out)
	}
	var answer struct {
		Surprises, Changes []string
	}
	raw := s.OK("sale", "apply", changed("stock: 100", "stock: 50000"), "--yes", "--json")
	if err := json.Unmarshal([]byte(raw), &answer); err != nil || len(answer.Surprises) != 1 || len(answer.Changes) != 1 {
		t.Errorf("%v: %s", err, raw)
	}
}

// Stock that nothing sells is not loaded in silence.
func TestStockThatNothingSells(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	const first = "id: flash\nstarts_at: 2020-01-01T00:00:00Z\nends_at: 2090-01-01T00:00:00Z\nitems:\n  - {sku: plain, stock: 100}\n  - {sku: later, stock: 0}\n  - {sku: two, regions: {north: 10, south: 0}}\n"
	const second = first + "  - {sku: a, stock: 0}\n  - {sku: b, stock: 0}\n  - {sku: c, stock: 0}\n  - {sku: d, stock: 0}\n  - {sku: e, stock: 0}\n  - {sku: f, stock: 0}\n  - {sku: g, stock: 7}\n"
	apply := func(text string) string { return s.OK("sale", "apply", s.File("sale.yaml", text)) }
	warns := func(out, want string) {
		t.Helper()
		if !strings.HasSuffix(out, "warning: "+want+"\n") || strings.Count(out, "warning") != 1 {
			t.Errorf("%s does not end with one warning: %s", out, want)
		}
	}
	quiet := func(out string) {
		t.Helper()
		if strings.Contains(out, "warning") {
			t.Error(out)
		}
	}
	warns(apply(first), "new in the sale with stock 0: later, two in south; buyers hear sold_out until stock is added")
	quiet(apply(strings.Replace(first, "stock: 100", "stock: 0", 1))) // that is no new item, and the change says it
	warns(apply(second), "new in the sale with stock 0: a, b, c, d, e and 1 more; buyers hear sold_out until stock is added")
	quiet(apply(first))
	s.OK("sale", "open", "flash")
	quiet(s.OK("stock", "add", "flash", "later", "5"))

	ended := strings.Replace(first, "2090", "2021", 1)
	s.OK("sale", "apply", s.File("sale.yaml", ended), "--yes")
	warns(s.OK("stock", "add", "flash", "plain", "5"), "flash has ended: nothing sells the units that were added, unless its file moves `ends_at`")
	s.OK("sale", "close", "flash")
	warns(s.OK("stock", "add", "flash", "plain", "5"), "flash is closed for good: nothing sells the units that were added; load another sale to sell them")
	quiet(s.OK("stock", "add", "flash", "plain", "-5"))
	if raw := s.OK("stock", "add", "flash", "plain", "1", "--json"); !strings.Contains(raw, `"warnings":["flash is closed`) {
		t.Error(raw)
	}
}

// A dry run of a change that is refused shows the change, and then what refuses it.
func TestADryRunShowsWhatIsRefused(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Hold("a", "few", 3, time.Hour)
	run := func(old, new string, status int, out, refusal string) {
		t.Helper()
		file := s.File("changed.yaml", strings.Replace(sitetest.SaleFile, old, new, 1))
		for _, flag := range []string{"--dry-run", "--yes"} {
			r := s.Run("sale", "apply", file, flag)
			if r.Status != status || !strings.Contains(r.Errors, refusal) || flag == "--dry-run" && !strings.Contains(r.Out, out) {
				t.Errorf("%s %s: %+v, want %q and %q", new, flag, r, out, refusal)
			}
			if flag == "--yes" && r.Out != "" || flag == "--dry-run" && !strings.Contains(r.Out, "this change would be refused\n") {
				t.Errorf("%s %s: %+v", new, flag, r)
			}
		}
	}
	run("id: double11", "id: double11\ntimezone: Europe/Berlin", 1, "timezone ", "timezone: stays")
	run("stock: 3}", "stock: 2}", 1, "item few: stock 3 → 2 (-1)\n", "few")
	s.OK("sale", "pause", "double11")
	s.OK("sale", "close", "double11")
	run("2090-", "2091-", 1, "ends_at ", "is closed")
}
