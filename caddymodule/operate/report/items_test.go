package report_test

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/report"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

var began = time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)

// history makes the movements of a sale, one a second.
type history struct{ movements []journal.Movement }

func (h *history) add(kind, id, cell string, units int64, was record.State, cause string) {
	m := journal.Movement{Seq: int64(len(h.movements) + 1), Time: began.Add(time.Duration(len(h.movements)) * time.Second), Kind: kind, ID: id, Was: was, Cause: cause}
	if cell != "" {
		m.Lines = []record.CellUnits{{Cell: cell, Units: units}}
	}
	if kind == "held" || kind == "returned" {
		m.Record = &record.Record{State: record.Held, Lines: m.Lines}
	}
	if kind == "returned" {
		m.Record.State = record.Confirmed
	}
	h.movements = append(h.movements, m)
}

// sold is a sale of which one item is sold out, one has an order that came back, and one has a name that is a formula.
func sold(t *testing.T) *report.Report {
	t.Helper()
	var h history
	h.add("loaded", "1", "few", 2, "", "ann@unix")
	h.add("loaded", "1", "=1+1", 9, "", "ann@unix")
	h.add("loaded", "1", "two@-x", 9, "", "ann@unix")
	h.add("applied", "1", "", 0, "", "ann@unix")
	h.add("open", "1", "", 0, "", "ann@unix")
	h.add("held", "a", "few", 1, "", "")
	h.add("held", "b", "few", 1, "", "")
	h.add("confirmed", "a", "few", 1, record.Held, "status_201")
	h.add("in_doubt", "b", "few", 1, record.Held, "timeout")
	h.add("paused", "1", "", 0, "", "bob@10.0.0.7")
	h.add("confirmed", "b", "few", 1, record.InDoubt, "operator:bob@10.0.0.7")
	h.add("held", "c", "=1+1", 2, "", "")
	h.add("confirmed", "c", "=1+1", 2, record.Held, "status_201")
	h.add("returned", "c", "=1+1", 1, record.Confirmed, "r1 operator:bob@10.0.0.7")
	h.add("adjusted", "add-1", "two@-x", -4, "", "<b>ann@unix")
	r := report.New("double11")
	r.Zone, r.Made = time.UTC, began
	if err := r.Add(h.movements); err != nil {
		t.Fatal(err)
	}
	r.AddItem("two@-x", record.Cell{SKU: "two", Region: "-x", Stock: 5, Available: 5})
	r.AddItem("few", record.Cell{SKU: "few", Stock: 2, Confirmed: 2})
	r.AddItem("=1+1", record.Cell{SKU: "=1+1", Stock: 9, Available: 8, Confirmed: 1})
	return r
}

const itemsCSV = `sku,region,stock,available,held,in_doubt,sold,returned,first_sale,last_sale,seconds_to_sell_out
'=1+1,,9,8,0,0,1,1,2026-11-11T00:00:12.000Z,2026-11-11T00:00:12.000Z,
few,,2,0,0,0,2,0,2026-11-11T00:00:07.000Z,2026-11-11T00:00:10.000Z,1.000
two,'-x,5,5,0,0,0,0,,,
`

func TestCSV(t *testing.T) {
	r := sold(t)
	if got := r.CSV(); got != itemsCSV {
		t.Errorf("%s\nwant\n%s", got, itemsCSV)
	}
	r.Missing = 3
	rows, err := csv.NewReader(strings.NewReader(r.CSV())).ReadAll()
	if err != nil || fmt.Sprint(rows[2]) != "[few  2 0 0 0 2    ]" {
		t.Errorf("movements are missing: %q %v", rows[2], err)
	}
	if got := report.New("none").CSV(); strings.Count(got, "\n") != 1 {
		t.Errorf("without items: %s", got)
	}
}

// No cell begins as a formula does, whatever a SKU is, and readers of CSV get the rest as it was.
func TestCSVHasNoFormula(t *testing.T) {
	r := report.New("double11")
	names := []string{`=cmd|'/C calc'!A0`, "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", `a,b"c`, "'x", "plain"}
	for _, name := range names {
		r.AddItem(name, record.Cell{SKU: name, Region: name})
	}
	rows, err := csv.NewReader(strings.NewReader(r.CSV())).ReadAll()
	if err != nil || len(rows) != len(names)+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("a cell is %q", cell)
			}
		}
	}
}

func TestActs(t *testing.T) {
	acts, more := sold(t).Acts()
	var got []string
	for _, a := range acts {
		got = append(got, fmt.Sprintf("%s %s: %s", a.At.Format("05"), a.By, a.What))
	}
	want := []string{
		"00 ann@unix: stock of few: +2 units, by the sale file", "01 ann@unix: stock of =1+1: +9 units, by the sale file", "02 ann@unix: stock of two@-x: +9 units, by the sale file",
		"03 ann@unix: sale file applied: version 1", "04 ann@unix: opened", "09 bob@10.0.0.7: paused", "10 operator:bob@10.0.0.7: reservations confirmed: 1",
		"14 <b>ann@unix: stock of two@-x: -4 units (add-1)",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || more != 0 {
		t.Errorf("%d more than\n%s\nwant\n%s", more, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A shop that changes stock all day does not push out who has opened and closed the sale.
func TestActsAreBounded(t *testing.T) {
	var h history
	h.add("open", "1", "", 0, "", "ann@unix")
	for i := range 600 {
		h.add("adjusted", fmt.Sprint("a", i), "few", 1, "", "shop@unix")
	}
	h.add("closed", "1", "", 0, "", "ann@unix")
	r := report.New("double11")
	if err := r.Add(h.movements); err != nil {
		t.Fatal(err)
	}
	acts, more := r.Acts()
	if len(acts) != 502 || more != 100 || acts[501].What != "closed" {
		t.Errorf("%d acts and %d more, the last one %v", len(acts), more, acts[len(acts)-1])
	}
}

func TestPageOfItemsAndActs(t *testing.T) {
	r := sold(t)
	r.Memory = 0
	var page strings.Builder
	if _, err := r.WriteTo(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<th scope="row">few</th><td>2</td><td>2</td><td>1s</td>`, `<th scope="row">=1&#43;1</th><td>1</td><td>9</td><td>–</td>`,
		`<td class="text">opened</td><td class="text">ann@unix</td>`, "&lt;b&gt;ann@unix",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page.String(), "<b>ann") {
		t.Error("a caller's name is markup")
	}
}
