package sale_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

const itemsInFile = head + "items: stock/items.csv\n"

func fromCSV(text, file string) (*sale.Sale, error) {
	return sale.ParseFrom([]byte(file), sale.Sources{
		Items: func(name string) ([]byte, error) {
			if name != "stock/items.csv" {
				return nil, fs.ErrNotExist
			}
			return []byte(text), nil
		},
		Query: func(sale.StockFrom) (*sale.Table, error) {
			return &sale.Table{Columns: []string{"sku", "stock"}, Rows: [][]any{{"a", int64(4)}, {"b", int64(5)}}}, nil
		},
	})
}

// Items come from CSV in the forms in which spreadsheets write it.
func TestItemsFromCSV(t *testing.T) {
	want, err := sale.Parse([]byte(head + `items: [{sku: "020", stock: 5, max: 2, ids: ["1", "x2"]}, {sku: b, regions: {north: 1, south: 0}, min: 2, max: 10000}]` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"commas":              "sku,stock,region,min,max,ids\n020,5,,,2,1 x2\nb,1,north,2,,\nb,0,south,2,,\n",
		"Excel in Germany":    "\ufeffSKU;Stock;Region;Min;Max;IDs\r\n020;5;;;2;1 x2\r\nb;1;north;2;;\r\nb;0;south;2;;\r\n",
		"tabs":                "stock\tsku\tregion\tmin\tmax\tids\n5\t020\t\t\t2\t1 x2\n1\tb\tnorth\t2\t\t\n0\tb\tsouth\t2\t\t\n",
		"quotes and spaces":   "\"sku\", \"stock\", region, min, max, ids\n\"020\", \"5\", , , 2, \"1 x2\"\n b ,1,north,2,,\nb,0,south,2,,",
		"empty lines":         "sku,stock,region,min,max,ids\n\n020,5,,,2,1  x2\n,,,,,\nb,1,north,2,,\n\r\nb,0,south,2,,\n\n",
		"a line with the sep": "sep=;\r\nsku;stock;region;min;max;ids\n020;5;;;2;1 x2\nb;1;north;2;;\nb;0;south;2;;\n",
	} {
		got, err := fromCSV(text, itemsInFile)
		if err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
	if got, err := fromCSV("sku;max\na;2\nb;3\n", itemsInFile+"stock_from: {dsn: d, query: q}\n"); err != nil || got.Items[1].Stock != 5 || got.Items[1].Max != 3 {
		t.Errorf("with a query for the stock: %+v, %v", got, err)
	}
}

// Mistakes in the CSV are named by row and column.
func TestItemsFromWrongCSV(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "items.csv: is empty",
		"sku,stock\n":                            "items.csv: has no rows",
		"sku,max\na,1\n":                         "items.csv row 1: has no column stock",
		"a,5\nb,6\n":                             `items.csv row 1: names a column "a", which is unknown: known are sku, stock, region, min, max, ids`,
		"sku,stok\na,5\n":                        `items.csv row 1: names a column "stok", which is unknown: did you mean stock?`,
		"sku,stock,stock\na,5,5\n":               "items.csv row 1: names the column stock twice",
		"sku,stock,\na,5,\n":                     "items.csv row 1: has no name for column 3",
		"sku,stock\na,5,6\n":                     "items.csv row 2: has 3 columns, and the first row names 2",
		"sku,stock\na,5\n\nb\n":                  "items.csv row 4: has 1 columns",
		"sku,stock\na,1.000\n":                   `items.csv row 2 ("a").stock: must be a whole number in plain digits such as 1000, not "1.000"`,
		"sku,stock\na,-1\n":                      `items.csv row 2 ("a").stock: must not be negative`,
		"sku,stock\na,\n":                        `items.csv row 2 ("a").stock: is empty`,
		"sku,stock\n,5\n":                        "items.csv row 2.sku: is empty",
		"sku,stock\n4.00638E+12,5\n":             "items.csv row 2.sku: is \"4.00638E+12\", which a spreadsheet has made of a long number",
		"sku,stock\na b,5\n":                     "items.csv row 2.sku: must be 1 to 128 printable ASCII characters without space",
		"sku,stock\na,99999999999999999999999\n": `items.csv row 2 ("a").stock: must be 0 to 1000000000000`,
		"sku,stock\na,5\nb,5\na,6\n":             `items.csv row 4 ("a"): stands in row 2 already`,
		"sku,stock,region\na,5,\na,6,north\n":    `items.csv row 3 ("a"): and row 2 are of one sku: give both a region`,
		"sku,stock,ids\na,5,1;2\n":               `items.csv row 2 ("a").ids: has ";" between ids: write a space there`,
		"sku,stock,ids\na,5,b\nb,5,\n":           `items.csv row 3 ("b").sku: is already the id of items.csv row 2 ("a")`,
		"sku,stock,max,min\na,5,2,3\n":           `items.csv row 2 ("a").max: must be at least min (3), not 2`,
		"sku,stock\n\"a,5\n":                     "items.csv row 2: cannot be read as CSV",
		"sku,stock\na,5\nb\xe4,5\n":              "items.csv row 3: has the byte 0xe4, which is no UTF-8 text",
		"\xff\xfes\x00k\x00":                     "items.csv: is UTF-16",
		"sku;stock,max\na;5,6\n":                 `items.csv row 1: names a column "stock,max", which is unknown`,
	} {
		_, err := fromCSV(text, itemsInFile)
		if err == nil || !strings.HasPrefix(err.Error(), "line 4: "+want) {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
	if _, err := fromCSV("", head+"items: other.CSV\n"); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "line 4: items: ") {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := sale.Parse([]byte(itemsInFile)); err == nil || !strings.Contains(err.Error(), "`caddy stockgate sale apply` alone reads") {
		t.Errorf("without the command: %v", err)
	}
	var many strings.Builder
	many.WriteString("sku,stock\n")
	for i := range sale.MaxItems {
		fmt.Fprintf(&many, "item-%d,7\n", i)
	}
	const want = "line 4: items.csv row 100002: is one more than the 100000 rows that there may be: split the sale" // and nothing else
	if _, err := fromCSV(many.String()+"more,1\n", itemsInFile); err == nil || err.Error() != want {
		t.Errorf("a file that is too large: %v, want %s", err, want)
	}
}

// FuzzItems: no file makes the reader panic, fail without saying what is wrong, or take what is no sale.
func FuzzItems(f *testing.F) {
	for _, seed := range []string{"sku,stock\na,1\n", "\ufeffsku;stock;region;ids\r\na;1;x;1 2\r\na;2;y;\r\n", "sep=|\nsku|stock\n\"a\"|1", "sku\tstock\n\n\t\n", "sku,stock\n\"a\nb\",1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := fromCSV(text, itemsInFile)
		if problems, ok := errors.AsType[sale.Problems](err); err != nil && (!ok || len(problems) == 0) {
			t.Fatalf("%T: %v", err, err)
		}
		if err == nil && s.Validate() != nil {
			t.Errorf("it takes %+v: %v", s, s.Validate())
		}
	})
}
