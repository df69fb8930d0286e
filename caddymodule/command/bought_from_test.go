package command_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// boughtFile writes a sale file whose purchases of before a query gives.
func boughtFile(s *sitetest.Site, d *shopDatabase, query, more string) string {
	return s.File("bought.yaml", fmt.Sprintf("id: double11\nstarts_at: 2020-11-11T00:00:00+08:00\nends_at: 2090-11-12T00:00:00+08:00\n"+
		"bought_from:\n  dsn: %q\n  query: %q\n%s", d.dsn, query, more))
}

const (
	twoItems     = "items: [{sku: \"1001\", stock: 100}, {sku: b, stock: 5}]\nlimits: [{per: buyer, every: sale, max: 2, count: units}]\n"
	boughtByName = "SELECT who AS buyer, sku, sum(units) AS units FROM sold GROUP BY who, sku"
)

// soldBefore is a shop's table of what it has sold.
func soldBefore(d *shopDatabase) {
	d.exec("CREATE TABLE sold (number varchar(20), who varchar(50), sku varchar(50), units decimal(10, 4))")
	d.exec("INSERT INTO sold VALUES ('n1', 'ann', '1001', 1), ('n2', 'ann', '1001', 1), ('n3', 'bob', '1001', 1), ('n4', 'cid', 'other', 9), ('n5', 'dan', 'b', 0)")
}

// What buyers have bought before a sale, by the shop's database, counts towards their limits, once.
func TestSaleApplyTakesPurchasesFromSQL(t *testing.T) {
	shopDatabases(t, func(t *testing.T, d *shopDatabase) {
		s, _, _, _ := shopWithRedis(t)
		soldBefore(d)
		file := boughtFile(s, d, boughtByName, twoItems)
		if out := s.OK("sale", "apply", file, "--dry-run"); !strings.Contains(out, "2 purchases with 3 units; 2 records of other items") || !strings.Contains(out, "dry run: nothing was changed") {
			t.Fatal(out)
		}
		if out := s.OK("sale", "list"); !strings.Contains(out, "(none)") {
			t.Fatalf("a dry run has changed something: %s", out)
		}
		s.OK("sale", "apply", file)
		d.exec("INSERT INTO sold VALUES ('n6', 'eve', '1001', 2)") // after the sale was loaded: it is not read again
		for _, status := range []string{"draft", "open"} {
			if out := s.OK("sale", "apply", file); !strings.Contains(out, "what was sold before was taken over already") || !strings.Contains(out, "no change\n") {
				t.Errorf("the same file again, %s: %s", status, out)
			}
			if status == "draft" {
				s.OK("sale", "open", "double11")
			}
		}
		b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
		if b.Cell("1001", "") != "100 97 0 0 3" || b.Cell("b", "") != "5 5 0 0 0" {
			t.Errorf("%+v", b)
		}
		for _, order := range []struct {
			buyer string
			units int64
			want  string
		}{{"ann", 1, "limit_reached"}, {"bob", 2, "limit_reached"}, {"bob", 1, "sold"}, {"bob", 1, "limit_reached"}, {"eve", 2, "sold"}} {
			if got := buy(s, order.buyer, order.units); got != order.want {
				t.Errorf("%s buys %d: %s, want %s", order.buyer, order.units, got, order.want)
			}
		}
	})
}

// With a ref, each row is a purchase; stock_from and bought_from may ask one database.
func TestSaleApplyTakesPurchasesByRef(t *testing.T) {
	shopDatabases(t, func(t *testing.T, d *shopDatabase) {
		s, _, _, _ := shopWithRedis(t)
		soldBefore(d)
		file := fromFile(s, d.dsn, "SELECT '1001' AS sku, 10 AS stock", "bought_from:\n  query: SELECT number AS ref, who AS buyer, units FROM sold WHERE sku = '1001'\n  counts: orders\n"+
			"limits: [{per: buyer, every: sale, max: 2, count: orders}]\n")
		if out := s.OK("sale", "apply", file); !strings.Contains(out, "moved in: redis has all 3 purchases with 3 units") {
			t.Error(out)
		}
		s.OK("sale", "open", "double11")
		b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
		if b.Cell("1001", "") != "10 7 0 0 3" {
			t.Errorf("%+v", b)
		}
		if got := buy(s, "ann", 1) + " " + buy(s, "bob", 1); got != "limit_reached sold" {
			t.Errorf("ann and bob: %s", got)
		}
	})
}

// A query that fails, or gives what cannot be, loads nothing; nor is a sale that sells charged for more.
func TestSaleApplySaysWhatIsWrongWithPurchases(t *testing.T) {
	shopDatabases(t, func(t *testing.T, d *shopDatabase) {
		s, _, _, _ := shopWithRedis(t)
		soldBefore(d)
		const one = "SELECT 'ann' AS buyer, '1001' AS sku, 1 AS units"
		for says, file := range map[string][2]string{
			"bought_from: the query fails: ":                                                                  {"SELECT no_such_column FROM sold", twoItems},
			"bought_from: the query gives no column units: name it with AS":                                   {"SELECT who AS buyer, sku FROM sold", twoItems},
			"bought_from: the query gives no column sku: name it with AS":                                     {"SELECT who AS buyer, units FROM sold", twoItems},
			`bought_from: the query gives a column "who": there are buyer, units, sku and ref`:                {"SELECT who, sku, units FROM sold", twoItems},
			"bought_from: the query gives the column units twice":                                             {"SELECT who AS buyer, sku, units, units FROM sold", twoItems},
			"bought_from: the query gives no rows. If that means that nothing was sold, write `absent: none`": {boughtByName + " HAVING sum(units) > 100", twoItems},
			`bought_from: row 2 of the query has a buyer that another row of item "1001" has: sum the units`:  {one + " UNION ALL " + one, twoItems},
			"bought_from: row 1 of the query has a wrong buyer: it must not be NULL":                          {"SELECT NULL AS buyer, '1001' AS sku, 1 AS units", twoItems},
			"bought_from: row 1 of the query gives a buyer of 0 bytes":                                        {"SELECT '' AS buyer, '1001' AS sku, 1 AS units", twoItems},
			"bought_from: row 1 of the query has wrong units: they must be a whole number":                    {"SELECT 'ann' AS buyer, '1001' AS sku, 0.5 AS units", twoItems},
			"bought_from: row 1 of the query has wrong units: they must not be negative":                      {"SELECT 'ann' AS buyer, '1001' AS sku, -1 AS units", twoItems},
			`bought_from: row 1 of the query has the sku "1001 "`:                                             {"SELECT 'ann' AS buyer, '1001 ' AS sku, 1 AS units", twoItems},
			`row 1 of the query is of item "1001", which has regions`:                                         {one, "items: [{sku: \"1001\", regions: {north: 5}}, {sku: b, stock: 1}]\n"},
			"item 1001: bought_from has 3 units, and the file loads 2":                                        {boughtByName, "items: [{sku: \"1001\", stock: 2}]\n"},
		} {
			r := s.Run("sale", "apply", boughtFile(s, d, file[0], file[1]))
			if r.Status != 1 || !strings.Contains(r.Errors, says) || strings.Contains(r.Errors, "top secret") {
				t.Errorf("%+v, want %q", r, says)
			}
		}
		if out := s.OK("sale", "list"); !strings.Contains(out, "(none)") {
			t.Errorf("%s", out)
		}
		s.OK("sale", "apply", boughtFile(s, d, boughtByName+" HAVING sum(units) > 100", "  absent: none\n"+twoItems))

		s.OK("sale", "open", "double11")
		s.OK("sale", "apply", s.File("plain.yaml", "id: other\nstarts_at: 2020-11-11T00:00:00+08:00\nends_at: 2090-11-12T00:00:00+08:00\n"+"items: [{sku: \"c\", stock: 1}]\n"))
		s.OK("sale", "open", "other")
		late := s.File("late.yaml", fmt.Sprintf("id: other\nstarts_at: 2020-11-11T00:00:00+08:00\nends_at: 2090-11-12T00:00:00+08:00\nbought_from: {dsn: %q, query: %q}\n%s", d.dsn, boughtByName, twoItems))
		if r := s.Run("sale", "apply", late); r.Status != 1 || !strings.Contains(r.Errors, "bought_from: the sale is open, and what buyers have bought before is taken over only into a draft") {
			t.Errorf("a sale that sells: %+v", r)
		}
		a := s.Admin("PUT", "/stockgate/sales/double11", "id: double11\nstarts_at: 2020-11-11T00:00:00Z\nends_at: 2090-11-12T00:00:00Z\nbought_from: {dsn: 'sqlite:/x', query: x}\n"+twoItems)
		if a.Status != 400 || !strings.Contains(a.Body, "is filled in by `caddy stockgate sale apply`") {
			t.Errorf("%+v", a)
		}
	})
}

// Purchases that change while they are read, because the shop still sells, open no sale.
func TestSaleApplySeesPurchasesChange(t *testing.T) {
	shopDatabases(t, func(t *testing.T, d *shopDatabase) {
		s, _, _, _ := shopWithRedis(t)
		drawn := "gen_random_uuid()::text"
		switch {
		case strings.HasPrefix(d.dsn, "mysql:"):
			drawn = "UUID()"
		case strings.HasPrefix(d.dsn, "sqlite:"):
			drawn = "hex(randomblob(16))"
		}
		file := boughtFile(s, d, "SELECT "+drawn+" AS ref, 'ann' AS buyer, '1001' AS sku, 1 AS units", twoItems)
		if r := s.Run("sale", "apply", file); r.Status != 1 || !strings.Contains(r.Errors, "the purchases have changed while they were read") {
			t.Errorf("%+v", r)
		}
		if r := s.Run("sale", "open", "double11"); r.Status != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// A purchase of a bundle enters the units of its components, and counts in the limits of both.
func TestSaleApplyTakesPurchasesOfBundles(t *testing.T) {
	shopDatabases(t, func(t *testing.T, d *shopDatabase) {
		s, _, _, _ := shopWithRedis(t)
		soldBefore(d)
		d.exec("INSERT INTO sold VALUES ('n7', 'fay', 'box', 1)")
		const items = "items:\n- {sku: \"1001\", stock: 100}\n- {sku: b, stock: 5}\n- {sku: box, components: [{sku: \"1001\", units: 6}, {sku: b}]}\n" +
			"limits: [{per: buyer, every: sale, max: 7, count: units, sku: \"1001\"}, {per: buyer, every: sale, max: 2, count: units, sku: box}]\n"
		s.OK("sale", "apply", boughtFile(s, d, boughtByName, items))
		s.OK("sale", "open", "double11")
		b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
		if b.Cell("1001", "") != "100 91 0 0 9" || b.Cell("b", "") != "5 4 0 0 1" || !b.MovedIn.Done || b.MovedIn.Units != 10 {
			t.Errorf("%+v, %+v", b, b.MovedIn)
		}
		for _, order := range []struct {
			units int64
			want  string
		}{{2, "limit_reached"}, {1, "sold"}, {1, "limit_reached"}} {
			if got := buy(s, "fay", order.units); got != order.want {
				t.Errorf("fay buys %d: %s, want %s", order.units, got, order.want)
			}
		}
		short := s.File("other.yaml", strings.NewReplacer("id: double11", "id: other", "stock: 5", "stock: 0").Replace(s.Read("bought.yaml")))
		if r := s.Run("sale", "apply", short); r.Status == 0 || !strings.Contains(r.Errors, "item b: bought_from has 1 units, and the file loads 0") {
			t.Errorf("more was bought than there is: %+v", r)
		}
	})
}
