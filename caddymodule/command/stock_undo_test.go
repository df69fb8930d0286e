package command_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// The last `stock add` is taken back once, and never what is held, sold or came back.
func TestStockUndo(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	cell := func(sku, region, want string) {
		t.Helper()
		if got := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", "").Cell(sku, region); got != want {
			t.Errorf("%s: %s, want %s", sku, got, want)
		}
	}
	refused := func(says string, args ...string) {
		t.Helper()
		if r := s.Run(append([]string{"stock", "undo", "double11"}, args...)...); r.Status != 1 || !strings.Contains(r.Errors, says) {
			t.Errorf("%q: %+v does not say %q", args, r, says)
		}
	}
	refused("the stock of double11 was not changed by 'stock add'")
	s.OK("stock", "add", "double11", "plain", "50", "--id", "first")
	s.OK("stock", "add", "double11", "two", "-5", "--region", "beijing", "--id", "second")

	p := sitetest.NewShopper(t, server)
	p.Hold("r", "plain", 3, time.Hour)
	p.Must(p.Confirm(t.Context(), "double11", "r", reservation.SourceShop, ""))
	s.OK("reservation", "return", "r", "plain=1", "--id", "back", "--no-restock")
	cell("plain", "", "149 147 0 0 2")

	refused("the journal of double11 has no change of stock with the id back", "--id", "back")
	if out := s.OK("stock", "undo", "double11"); !strings.Contains(out, "two in beijing has 40 units after +5 (id undo-second)") {
		t.Error(out)
	}
	cell("two", "beijing", "40 40 0 0 0")
	refused("the last change of double11's stock has taken second back already: name an earlier one with --id")
	if out := s.OK("stock", "undo", "double11", "--id", "second"); !strings.Contains(out, "second was taken back before") || !strings.Contains(out, "nothing was changed") {
		t.Error(out)
	}
	refused("has no change of stock with the id third", "--id", "third")
	p.Hold("all", "plain", 100, time.Hour)
	refused("47", "--id", "first") // of the 50 that were added
	cell("plain", "", "149 47 100 0 2")
	p.Must(p.Release(t.Context(), "double11", "all", reservation.SourceShop, ""))
	if out := s.OK("stock", "undo", "double11", "--id", "first"); !strings.Contains(out, "plain has 99 units after -50 (id undo-first)") {
		t.Error(out)
	}
	cell("plain", "", "99 97 0 0 2")

	s.OK("stock", "add", "double11", "few", "1", "--id", "asked")
	if out := answerOnTerminal(t, s, "no", "stock", "undo", "double11"); !strings.Contains(out, "+1 units of few") || !strings.Contains(out, "nothing was changed") {
		t.Error(out)
	}
	cell("few", "", "4 4 0 0 0")
	if out := answerOnTerminal(t, s, "double11", "stock", "undo", "double11"); !strings.Contains(out, "few has 3 units after -1") {
		t.Error(out)
	}
	s.OK("stock", "add", "double11", "few", "1", "--id", strings.Repeat("y", 128))
	refused("is too long to be named in another")
}

// A change is found behind more movements than one answer has.
func TestStockUndoFarBack(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	s.OK("stock", "add", "double11", "few", "7", "--id", "far")
	p := sitetest.NewShopper(t, server)
	for i := range adminapi.JournalPage { // two movements each
		id := fmt.Sprint("x", i)
		p.Hold(id, "plain", 1, time.Hour)
		p.Must(p.Release(t.Context(), "double11", id, reservation.SourceShop, ""))
	}
	if out := s.OK("stock", "undo", "double11"); !strings.Contains(out, "few has 3 units after -7") {
		t.Error(out)
	}
}
