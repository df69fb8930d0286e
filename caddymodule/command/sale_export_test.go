package command_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqlite"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// withoutTime takes the column "at" out of a tally.
func withoutTime(csv string) string {
	lines := strings.Split(csv, "\n")
	for i, line := range lines {
		cells := strings.Split(line, ",")
		if len(cells) > 3 {
			cells[3] = "at"
		}
		lines[i] = strings.Join(cells, ",")
	}
	return strings.Join(lines, "\n")
}

// The tally of a closed sale agrees with `sale show` and with the ledger, and says what keeps
// it from being final.
func TestSaleCloseExports(t *testing.T) {
	server, app := sitetest.Redis(t)
	db := filepath.Join(t.TempDir(), "ledger.db")
	app["ledger"] = map[string]any{"driver": "sqlite", "file": db}
	s := sitetest.Open(t, app)
	s.OpenSale()
	s.OK("stock", "add", "double11", "plain", "7")
	p := sitetest.NewShopper(t, server)
	for i, id := range []string{"sold", "back", "gone", "lost", "held"} {
		p.Hold(id, "plain", int64(i+1), time.Hour)
	}
	for _, id := range []string{"sold", "back", "gone"} {
		p.Must(p.Confirm(t.Context(), "double11", id, reservation.SourceShop, "status_201"))
	}
	returns := func(id, name string, restock bool, lines ...sale.Line) {
		t.Helper()
		if _, err := p.Return(t.Context(), "double11", id, reservation.Return{ID: name, Restock: restock, Lines: lines}); err != nil {
			t.Fatal(err)
		}
	}
	returns("back", "x", true, sale.Line{SKU: "plain", Quantity: 1})
	returns("back", "y|y", true)
	returns("gone", "x", false, sale.Line{SKU: "plain", Quantity: 2})
	p.Must(p.Doubt(t.Context(), "double11", "lost", "timeout"))

	out := s.OK("sale", "close", "double11", "--export", s.Path("tally.csv"))
	for _, want := range []string{"double11 is closed\n", "/tally.csv has the tally of double11\nit is NOT final:\n", "  5 units are held: the last hold ends by itself at ", "  4 units are in doubt: 'caddy stockgate holds double11' lists them", "sale export double11 FILE"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q: %s", want, out)
		}
	}
	const before = `sale,status,final,at,sku,region,stock,available,held,in_doubt,confirmed,returned,adjusted
double11,closed,no,at,..,,7,7,0,0,0,0,0
double11,closed,no,at,a/b%c?d#e,,5,5,0,0,0,0,0
double11,closed,no,at,few,,3,3,0,0,0,0,0
double11,closed,no,at,plain,,105,94,5,4,2,4,5
double11,closed,no,at,two,beijing,40,40,0,0,0,0,0
double11,closed,no,at,two,shanghai,60,60,0,0,0,0,0
`
	if got := withoutTime(s.Read("tally.csv")); got != before {
		t.Errorf("%s, not\n%s", got, before)
	}
	r := s.Run("sale", "export", "double11", "-")
	if r.Status != 0 || withoutTime(r.Out) != before || !strings.HasPrefix(r.Errors, "it is NOT final:\n") {
		t.Errorf("%+v", r)
	}

	p.Must(p.Confirm(t.Context(), "double11", "lost", reservation.SourceOperator, "ann"))
	p.Must(p.Release(t.Context(), "double11", "held", reservation.SourceShop, "status_422"))
	if out := s.OK("sale", "export", "double11", s.Path("tally.JSON")); !strings.HasSuffix(out, "/tally.JSON has the tally of double11\nit is final\n") {
		t.Error(out)
	}
	var tally reservation.Tally
	if err := json.Unmarshal([]byte(s.Read("tally.JSON")), &tally); err != nil || !tally.Final || !tally.Balanced || tally.At.IsZero() || tally.Seq == 0 || tally.Status != sale.Closed {
		t.Errorf("%+v %v", tally, err)
	}
	_, out, _ = strings.Cut(s.OK("sale", "export", "double11", "-", "--json"), `"seq"`) // "at" stands before it
	if _, want, _ := strings.Cut(s.Admin("GET", "/stockgate/sales/double11/tally", "").Body, `"seq"`); out != want || out == "" {
		t.Errorf("%s, not %s", out, want)
	}
	s.OK("sale", "close", "double11", "--export", s.Path("again.csv")) // it is closed already
	if got := s.Read("again.csv"); !strings.Contains(got, "double11,closed,yes,") || !strings.Contains(got, ",plain,,105,99,0,0,6,4,5\n") {
		t.Error(got)
	}

	shown := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "")
	for i, c := range tally.Items {
		if c.Cell != shown.Items[i] {
			t.Errorf("the tally has %+v, sale show %+v", c, shown.Items[i])
		}
	}
	l, err := sqlite.Open(db)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.Eventually("all in the ledger", func() (string, bool) {
		h, err := p.Journal().Head(t.Context(), "double11")
		at, _ := l.Position(t.Context(), "double11")
		return "not yet", err == nil && at.Seq == h.Last && at.Seq == tally.Seq
	})
	stock, err := l.Stock(t.Context(), "double11")
	if err != nil || len(stock) != len(tally.Items) {
		t.Fatal(stock, err)
	}
	for _, c := range tally.Items {
		want := ledger.Cell{Name: sale.Cell(c.SKU, c.Region), Stock: c.Stock, Available: c.Available, Held: c.Held, InDoubt: c.InDoubt, Confirmed: c.Confirmed}
		found := false
		for _, have := range stock {
			found = found || have == want
		}
		if !found {
			t.Errorf("the ledger has no %+v in %+v", want, stock)
		}
	}
	var returned, adjusted string
	if err := l.Movements(t.Context(), "double11", mustEpoch(t, p), 0, 1e6, func(m *journal.Movement) error {
		switch m.Kind {
		case "returned":
			returned += fmt.Sprint(m.Lines)
		case "adjusted":
			adjusted += fmt.Sprint(m.Lines)
		}
		return nil
	}); err != nil || returned != "[{plain 1}][{plain 1}][{plain 2}]" || adjusted != "[{plain 7}][{plain -2}]" {
		t.Errorf("the ledger has returned %s adjusted %s, error %v", returned, adjusted, err)
	}
}

func mustEpoch(t *testing.T, p sitetest.Shopper) int64 {
	t.Helper()
	h, err := p.Journal().Head(t.Context(), "double11")
	if err != nil {
		t.Fatal(err)
	}
	return h.Epoch
}

// A file that cannot be written is an error before the sale is closed, and no file is left
// behind.
func TestSaleCloseExportsOrRefuses(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"sale", "close", "double11", "--export", s.Path("tally.txt")}, 2, "the name must end in .csv or .json"},
		{[]string{"sale", "close", "double11", "--export", ""}, 2, "--export is empty"},
		{[]string{"sale", "close", "double11", "--export", s.Path("no/such/dir.csv")}, 2, "the file cannot be written: "},
		{[]string{"sale", "close", "nosuch", "--export", s.Path("tally.csv")}, 1, "no such sale: nosuch"},
		{[]string{"sale", "export", "nosuch", s.Path("tally.csv")}, 1, "no such sale: nosuch"},
		{[]string{"sale", "export", "No Id", s.Path("tally.csv")}, 2, `"No Id" is no id of a sale`},
		{[]string{"sale", "export", "double11"}, 2, "it takes 2 arguments: caddy stockgate sale export <sale> <file>"},
		{[]string{"sale", "export", "double11", s.Path("xlsx")}, 2, "the name must end in .csv or .json"},
	} {
		if r := s.Run(c.args...); r.Status != c.status || r.Out != "" || !strings.Contains(r.Errors, c.says) {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" {
		t.Errorf("it is %s", b.Status)
	}
	files, err := filepath.Glob(s.Path("*tally*"))
	if err != nil || len(files) > 0 {
		t.Errorf("there are %q, error %v", files, err)
	}
	// an open sale can be counted, which is not the end
	s.File("tally.csv", "what was there")
	if out := s.OK("sale", "export", "double11", s.Path("tally.csv")); !strings.Contains(out, "  the sale is open: close it with 'caddy stockgate sale close double11'\n") {
		t.Error(out)
	}
	if got := s.Read("tally.csv"); !strings.HasPrefix(got, "sale,status,final,at,") || !strings.Contains(got, "double11,open,no,") {
		t.Error(got)
	}
}
