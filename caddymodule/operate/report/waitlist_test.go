package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/report"
	"github.com/stockgate/stockgate/internal/store/record"
)

// waited is a sale of one unit for which three people waited: one let the offer lapse, one left, one ordered.
func waited(t *testing.T) *report.Report {
	t.Helper()
	var h history
	h.add("loaded", "1", "few", 1, "", "ann@unix")
	h.add("loaded", "1", "many", 9, "", "ann@unix")
	h.add("applied", "1", "", 0, "", "ann@unix")
	h.add("open", "1", "", 0, "", "ann@unix")
	h.add("held", "a", "few", 1, "", "")
	for _, number := range []string{"1", "2", "3", "4"} {
		h.add("entered", number, "few", 1, "", "")
	}
	h.add("expired", "a", "few", 1, record.Held, "")
	h.add("held", "w1.1700000000000", "few", 1, "", "")
	h.add("offers_paused", "2", "", 0, "", "bob@10.0.0.7")
	h.add("released", "w1.1700000000000", "few", 1, record.Held, "lapsed")
	h.add("left", "2", "few", 1, "", "left")
	h.add("left", "4", "few", 1, "", "limit_reached")
	h.add("offers_resumed", "2", "", 0, "", "bob@10.0.0.7")
	h.add("held", "w3.1700000000001", "few", 1, "", "")
	h.add("released", "w3.1700000000001", "few", 1, record.Held, "accepted")
	h.add("held", "b", "few", 1, "", "")
	h.add("confirmed", "b", "few", 1, record.Held, "status_201")
	r := report.New("double11")
	r.Zone, r.Made = time.UTC, began
	if err := r.Add(h.movements); err != nil {
		t.Fatal(err)
	}
	r.AddItem("few", record.Cell{SKU: "few", Stock: 1, Confirmed: 1})
	r.AddItem("many", record.Cell{SKU: "many", Stock: 9, Available: 9})
	return r
}

// The report tells what became of people who waited, and an offer is no order: it was neither refused by the shop nor is it open.
func TestWaitlist(t *testing.T) {
	r := waited(t)
	var page strings.Builder
	if _, err := r.WriteTo(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"people who entered</th><td>4<", "offers made</th><td>2<", "accepted: the person ordered</th><td>1<", "lapsed: not used in time</th><td>1<", ">left</th><td>1<",
		"taken off: they could not buy any more</th><td>1<", "released: the shop refused, or was not reached</th><td>0<", "expired unpaid</th><td>1<", "still open</th><td>0<",
		"offers to people who wait paused</td><td class=\"text\">bob@10.0.0.7<", "offers to people who wait resumed</td>",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if strings.Contains(page.String(), "still on the list") {
		t.Error("it says that people are on the list")
	}
	const want = `sku,region,stock,available,held,in_doubt,sold,returned,first_sale,last_sale,seconds_to_sell_out,entered,offers,offers_accepted,offers_lapsed,left
few,,1,0,0,0,1,0,2026-11-11T00:00:19.000Z,2026-11-11T00:00:19.000Z,14.000,4,2,1,1,1
many,,9,9,0,0,0,0,,,,0,0,0,0,0
`
	if got := r.CSV(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if !r.Agrees() {
		t.Error("the movements do not lead to the stock")
	}
}

// A sale without a waiting list says nothing of one.
func TestNoWaitlist(t *testing.T) {
	var page strings.Builder
	if _, err := sold(t).WriteTo(&page); err != nil || strings.Contains(page.String(), "waiting list") {
		t.Errorf("%v %s", err, page.String())
	}
}
