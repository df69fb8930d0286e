package sale_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// from is line 4 and 5 of a file.
const from = "stock_from:\n  {dsn: \"sqlite:shop.db\", query: SELECT 1}\n"

func table(columns string, rows ...[]any) func(sale.StockFrom) (*sale.Table, error) {
	return func(sale.StockFrom) (*sale.Table, error) {
		return &sale.Table{Columns: strings.Fields(columns), Rows: rows}, nil
	}
}

func row(values ...any) []any { return values }

// A file whose stock comes from a query is the same sale as one that lists it.
func TestStockFromIsAsIfListed(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		ask  func(sale.StockFrom) (*sale.Table, error)
		want string // the items
	}{
		"rows alone": {from, table("sku stock", row("a", int64(5)), row(int64(20002001), int64(0))),
			"items: [{sku: a, stock: 5}, {sku: 20002001, stock: 0}]"},
		"columns in any order and case, texts": {from, table("Stock SKU", row("12", []byte("a"))), "items: [{sku: a, stock: 12}]"},
		"decimals":                             {from, table("sku stock", row("a", []byte("3.0000")), row("b", "10.00"), row("c", "0.000")), "items: [{sku: a, stock: 3}, {sku: b, stock: 10}, {sku: c, stock: 0}]"},
		"regions": {from, table("sku region stock", row("a", "north", int64(1)), row("b", nil, int64(2)), row("a", "south", int64(3))),
			"items: [{sku: a, regions: {north: 1, south: 3}}, {sku: b, stock: 2}]"},
		"bounds in the query": {from, table("sku stock min max", row("a", int64(1), int64(2), int64(3)), row("b", int64(1), nil, nil)),
			"items: [{sku: a, stock: 1, min: 2, max: 3}, {sku: b, stock: 1}]"},
		"bounds in the file": {from + "items: [{sku: b, max: 2}, {sku: a, min: 3}, {sku: c, stock: 9}]\n", table("sku stock", row("a", int64(1)), row("b", int64(2))),
			"items: [{sku: b, stock: 2, max: 2}, {sku: a, stock: 1, min: 3}, {sku: c, stock: 9}]"},
		"min in the file, max in the query": {from + "items: [{sku: a, min: 2}]\n", table("sku stock max", row("a", int64(1), int64(4))),
			"items: [{sku: a, stock: 1, min: 2, max: 4}]"},
		"a limit of an item": {from + "limits: [{per: buyer, every: sale, max: 1, count: units, sku: a}]\n", table("sku stock", row("a", int64(1))),
			"items: [{sku: a, stock: 1}]\nlimits: [{per: buyer, every: sale, max: 1, count: units, sku: a}]"},
		"no stock_from": {"items: [{sku: a, stock: 1}]\n", nil, "items: [{sku: a, stock: 1}]"},
	} {
		got, err := sale.ParseFrom([]byte(head+test.file), sale.Sources{Query: test.ask})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := sale.Parse([]byte(head + test.want))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) || !got.Equal(want) {
			t.Errorf("%s: %s, not %s", name, a, b)
		}
	}
}

func TestStockFromNamesWhatIsWrong(t *testing.T) {
	one := table("sku stock", row("a", int64(1)))
	many := make([][]any, sale.MaxItems+1)
	for i := range many {
		many[i] = row(fmt.Sprint(i), int64(1))
	}
	for name, test := range map[string]struct {
		file string
		ask  func(sale.StockFrom) (*sale.Table, error) // nil: it must not be called
		want string
	}{
		// the file, before the query runs
		"no mapping":        {"stock_from: postgres\n", nil, `line 4: stock_from: must be a mapping (name: value), not "postgres"`},
		"unknown field":     {"stock_from: {dsn: x, query: y, timeut: 1s}\n", nil, "line 4: stock_from.timeut: there is no such field: did you mean timeout?"},
		"nothing in it":     {"stock_from: {}\n", nil, "line 4: stock_from.dsn: is missing: give the address of the shop's database, such as postgres://…, mysql://… or sqlite:/…\nline 4: stock_from.query: is missing: give a query with the columns sku and stock"},
		"empty fields":      {"stock_from: {dsn: '', query: ' '}\n", nil, "line 4: stock_from.dsn: is empty: give the address of the shop's database, such as postgres://…, mysql://… or sqlite:/…\nline 4: stock_from.query: is empty: give a query with the columns sku and stock"},
		"timeout":           {"stock_from: {dsn: x, query: y, timeout: 11m}\n", nil, "line 4: stock_from.timeout: must be 1s to 10m"},
		"another mistake":   {from + "timezone: Mars\n", nil, `line 6: timezone: there is no time zone "Mars": use an IANA name such as Asia/Shanghai`},
		"an item's regions": {from + "items: [{sku: a, regions: {}}]\n", nil, "line 6: items[0].regions: must have at least one region"},
		"items are empty":   {from + "items: []\n", nil, "line 6: items: must have at least one item"},

		// the columns
		"unknown column": {from, table("sku qty", row("a", int64(1))), `line 5: stock_from.query: gives a column "qty": there are sku, stock, region, min or max; name it with AS, or leave it out`},
		"no stock":       {from, table("sku", row("a")), "line 5: stock_from.query: gives no column stock: name it with AS"},
		"a column twice": {from, table("sku stock STOCK", row("a", int64(1), int64(1))), "line 5: stock_from.query: gives the column stock twice"},
		"no rows":        {from, table("sku stock"), "line 5: stock_from.query: gives no rows: there would be nothing to sell"},
		"too many rows":  {from, table("sku stock", many...), "line 5: stock_from.query: must have at most 100000 entries, not 100001"},

		// the rows
		"sku is NULL":              {from, table("sku stock", row(nil, int64(1))), "line 5: stock_from row 1.sku: must not be NULL"},
		"sku is empty":             {from, table("sku stock", row("", int64(1))), `line 5: stock_from row 1.sku: must be 1 to 128 printable ASCII characters without space, not ""`},
		"sku is padded":            {from, table("sku stock", row("a  ", int64(1))), `line 5: stock_from row 1.sku: must be 1 to 128 printable ASCII characters without space, not "a  "`},
		"sku is a fraction":        {from, table("sku stock", row(1.5, int64(1))), `line 5: stock_from row 1.sku: must be text or a whole number, not "1.5": cast it in the query, as in CAST(… AS text)`},
		"stock is NULL":            {from, table("sku stock", row("a", int64(1)), row("b", nil)), `line 5: stock_from row 2 ("b").stock: must not be NULL: give 0, or leave the row out of the query`},
		"stock is negative":        {from, table("sku stock", row("a", int64(-3))), `line 5: stock_from row 1 ("a").stock: must not be negative, got "-3"`},
		"stock is a fraction":      {from, table("sku stock", row("a", 1.5)), `line 5: stock_from row 1 ("a").stock: must be a whole number, not "1.5 (float64)": cast it in the query, as in CAST(… AS bigint)`},
		"stock is half a unit":     {from, table("sku stock", row("a", []byte("0.5"))), `line 5: stock_from row 1 ("a").stock: must be a whole number, not "0.5": cast it in the query, as in CAST(… AS bigint)`},
		"stock is nearly whole":    {from, table("sku stock", row("a", "10.0001")), `line 5: stock_from row 1 ("a").stock: must be a whole number, not "10.0001": cast it in the query, as in CAST(… AS bigint)`},
		"stock is below zero":      {from, table("sku stock", row("a", "-3.00")), `line 5: stock_from row 1 ("a").stock: must not be negative, got "-3"`},
		"stock has no end":         {from, table("sku stock", row("a", "3.")), `line 5: stock_from row 1 ("a").stock: must be a whole number, not "3.": cast it in the query, as in CAST(… AS bigint)`},
		"stock is a word":          {from, table("sku stock", row("a", "many")), `line 5: stock_from row 1 ("a").stock: must be a whole number, not "many": cast it in the query, as in CAST(… AS bigint)`},
		"stock is too much":        {from, table("sku stock", row("a", int64(sale.MaxUnits+1)), row("b", "99999999999999999999")), "line 5: stock_from row 1 (\"a\").stock: must be 0 to 1000000000000\nline 5: stock_from row 2 (\"b\").stock: must be 0 to 1000000000000"},
		"a sku twice":              {from, table("sku stock", row("a", int64(1)), row("b", int64(1)), row("a", int64(2))), `line 5: stock_from row 3 ("a"): stands in row 1 already: give one row for each sku and region`},
		"a region twice":           {from, table("sku region stock", row("a", "n", int64(1)), row("a", "n", int64(2))), `line 5: stock_from row 2 ("a"): stands in row 1 already: give one row for each sku and region`},
		"with and without region":  {from, table("sku region stock", row("a", nil, int64(1)), row("a", "n", int64(2))), `line 5: stock_from row 2 ("a"): and row 1 are of one sku: give both a region, or one row for the sku`},
		"a region with a space":    {from, table("sku region stock", row("a", "n n", int64(1))), `line 5: stock_from row 1 ("a").region: must be 1 to 128 printable ASCII characters without space, not "n n"`},
		"a region of another kind": {from, table("sku region stock", row("a", true, int64(1))), `line 5: stock_from row 1 ("a").region: must be text or a whole number, not "true": cast it in the query, as in CAST(… AS text)`},
		"two minima":               {from, table("sku region stock min", row("a", "n", int64(1), int64(1)), row("a", "s", int64(2), int64(2))), `line 5: stock_from row 2 ("a").min: is another one than in row 1 of the same sku`},
		"two maxima":               {from, table("sku region stock max", row("a", "n", int64(1), int64(1)), row("a", "s", int64(2), nil)), `line 5: stock_from row 2 ("a").max: is another one than in row 1 of the same sku`},
		"max below min":            {from, table("sku stock min max", row("a", int64(1), int64(3), int64(2))), `line 5: stock_from row 1 ("a").max: must be at least min (3), not 2`},
		"max is a word":            {from, table("sku stock max", row("a", int64(1), "two")), `line 5: stock_from row 1 ("a").max: must be a whole number, not "two": cast it in the query, as in CAST(… AS bigint)`},
		"cells of one name":        {from, table("sku region stock", row("a@n", nil, int64(1)), row("a", "n", int64(2))), `line 5: stock_from row 2 ("a").regions.n: its stock would be called "a@n", as that of stock_from row 1 ("a@n"): rename one of them`},

		// rows and items
		"a row that is not listed": {from + "items: [{sku: a}]\n", table("sku stock", row("a", int64(1)), row("b", int64(1))), `line 5: stock_from row 2 ("b"): is no item of this file: list it, leave the row out of the query, or leave items out to sell all rows`},
		"an item without row":      {from + "items: [{sku: a}, {sku: b, max: 2}]\n", one, `line 6: items[1]: needs stock, and no row of stock_from has the sku "b"`},
		"stock in both":            {from + "items:\n  - sku: a\n    stock: 1\n", one, "line 8: items[0].stock: is also given by row 1 of stock_from: leave it out here, or leave the row or the column out of the query"},
		"regions in both":          {from + "items: [{sku: a, regions: {n: 1}}]\n", one, "line 6: items[0].regions: is also given by row 1 of stock_from: leave it out here, or leave the row or the column out of the query"},
		"bounds in both": {from + "items:\n  - {sku: a, min: 1, max: 2}\n", table("sku stock min max", row("a", int64(1), int64(1), int64(2))),
			"line 7: items[0].min: is also given by row 1 of stock_from: leave it out here, or leave the row or the column out of the query\n" +
				"line 7: items[0].max: is also given by row 1 of stock_from: leave it out here, or leave the row or the column out of the query"},
		"a limit of no item": {from + "limits: [{per: buyer, every: sale, max: 1, count: units, sku: b}]\n", one, `line 6: limits[0].sku: no item of this sale has the sku "b"`},
	} {
		called := false
		_, err := sale.ParseFrom([]byte(head+test.file), sale.Sources{Query: func(f sale.StockFrom) (*sale.Table, error) {
			if called = true; test.ask == nil {
				return nil, errors.New("the query was run")
			}
			return test.ask(f)
		}})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\n%v\nnot\n%s", name, err, test.want)
		}
		if _, ok := errors.AsType[sale.Problems](err); !ok || called != (test.ask != nil) {
			t.Errorf("%s: a %T, the query was run: %v", name, err, called)
		}
	}
}

// What asks is told what the file says, and what it answers is passed on.
func TestStockFromAsks(t *testing.T) {
	var asked []sale.StockFrom
	failed := errors.New("no such table: goods")
	for file, want := range map[string]string{
		from: "line 5: stock_from: no such table: goods",
		"stock_from: {dsn: \"postgres://{env.X}@h\", query: SELECT 1, timeout: 2m}\n": "line 4: stock_from: no such table: goods",
	} {
		_, err := sale.ParseFrom([]byte(head+file), sale.Sources{Query: func(f sale.StockFrom) (*sale.Table, error) {
			asked = append(asked, f)
			return nil, failed
		}})
		if !errors.Is(err, failed) || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
	want := []sale.StockFrom{{"postgres://{env.X}@h", "SELECT 1", 2 * time.Minute}, {"sqlite:shop.db", "SELECT 1", 30 * time.Second}}
	slices.SortFunc(asked, func(a, b sale.StockFrom) int { return strings.Compare(a.DSN, b.DSN) })
	if !slices.Equal(asked, want) {
		t.Errorf("%v, not %v", asked, want)
	}
}

// A caller that cannot query the database does not accept the file.
func TestParseRefusesStockFrom(t *testing.T) {
	const want = "line 5: stock_from: is filled in by `caddy stockgate sale apply`, which alone asks the shop's database: apply the file with it"
	if _, err := sale.Parse([]byte(head + from)); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// What is wrong with a shop's keys is said at the line that names them.
func TestKeysErrorsNameTheirLine(t *testing.T) {
	const file = "items: [{sku: a}]\nstock_from: {redis: 'redis://a', key: '{sku}'}\nbought_from: {key: 'b{sku}'}\n"
	for text, want := range map[string]string{
		"stock_from: no":      "line 5: stock_from: no",
		"bought_from.key: no": "line 6: bought_from.key: no",
		"item a: no":          "line 5: item a: no",
	} {
		_, err := sale.ParseFrom([]byte(head+file), sale.Sources{Keys: func(sale.MoveFrom) (*sale.MovedStock, error) { return nil, errors.New(text) }})
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Mistakes about a query of purchases are named before it runs.
func TestBoughtFromQuery(t *testing.T) {
	for text, want := range map[string]string{
		"bought_from: {query: SELECT 1}\n":                       "line 4: bought_from.dsn: is missing: give the address of the shop's database, such as postgres://…, mysql://… or sqlite:/…",
		"bought_from: {dsn: x}\n":                                "line 4: bought_from.query: is missing: give a query with the columns buyer, sku and units",
		"bought_from: {dsn: x, query: ' '}\n":                    "line 4: bought_from.query: is empty: give a query with the columns buyer, sku and units",
		"bought_from: {dsn: x, query: y, key: 'b{sku}'}\n":       "line 4: bought_from.key: cannot stand beside query: what was bought is taken from one of them",
		"bought_from: {dsn: x, query: y, json: {buyer: a}}\n":    "line 4: bought_from.json: cannot stand beside query: what was bought is taken from one of them",
		"bought_from: {dsn: x, query: y, identity: person}\n":    `line 4: bought_from.identity: "person" is unknown: use buyer`,
		"bought_from: {dsn: x, query: y, timeout: 11m}\n":        "line 4: bought_from.timeout: must be 1s to 10m",
		"bought_from: {key: 'b{sku}'}\n":                         "line 4: bought_from.redis: is missing: give the address of the shop's Redis, such as redis://:{env.SHOP_REDIS}@host:6379/0, or dsn and query for a database",
		"bought_from: {dsn: x, query: y}\nitems: [{sku: a b}]\n": `line 5: items[0].sku: must be 1 to 128 printable ASCII characters without space, not "a b"`,
	} {
		if !strings.Contains(text, "items") {
			text += "items: [{sku: a, stock: 1}]\n"
		}
		_, err := sale.ParseFrom([]byte(head+text), sale.Sources{Keys: func(sale.MoveFrom) (*sale.MovedStock, error) { return nil, errors.New("the query was run") }})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s%v, want %s", text, err, want)
		}
	}
	var asked sale.MoveFrom
	_, err := sale.ParseFrom([]byte(head+"stock_from: {dsn: x, query: z}\nbought_from: {query: y, absent: none}\n"), sale.Sources{
		Query: table("sku region stock", row("a", nil, int64(3)), row("b", "n", int64(4))),
		Keys: func(from sale.MoveFrom) (*sale.MovedStock, error) {
			asked = from
			return &sale.MovedStock{}, nil
		},
	})
	if b := asked.Bought; err != nil || b == nil || b.DSN != "x" || b.Query != "y" || b.Identity != "buyer" || !b.AbsentIsNone || asked.Listed["a"] != 3 || !asked.Regional["b"] {
		t.Errorf("%+v, error %v", asked, err)
	}
}
