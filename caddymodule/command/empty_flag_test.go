package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// A text flag that is given and empty, as of a variable that is not set, is a mistake in the
// command line: without the flag the command would do more, or something else.
func TestEmptyFlagsAreMistakes(t *testing.T) {
	server, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	p := sitetest.NewShopper(t, server)
	p.Doubts(0, map[string]string{"a": "status_500", "b": "status_500"}, "a", "b")
	p.Hold("sold", "plain", 1, time.Hour)
	s.OK("reservation", "confirm", "sold")
	orders := s.File("orders.csv", "id\nsold\n")
	for _, c := range []struct {
		flag string
		args []string
	}{
		{"--older", []string{"holds", "double11", "--cause", "status_500", "--release"}},
		{"--older", []string{"holds", "double11", "--cause", "status_500", "--confirm"}},
		{"--cause", []string{"holds", "double11", "--older", "0s", "--release"}},
		{"--cause", []string{"holds", "double11"}},
		{"--state", []string{"holds", "double11"}},
		{"--confirm-from", []string{"holds", "double11"}},
		{"--column", []string{"holds", "double11", "--confirm-from", orders}},
		{"--id", []string{"stock", "add", "double11", "plain", "1"}},
		{"--id", []string{"reservation", "return", "sold"}},
		{"--shop", []string{"reconcile", "double11"}},
		{"--column", []string{"reconcile", "double11", "--shop", orders}},
		{"--export", []string{"sale", "close", "double11"}},
		{"--from", []string{"rebuild", "double11"}},
		{"--format", []string{"journal", "tail", "double11"}},
		{"--old-key", []string{"key", "replace", "--begin-anew"}},
		{"--out", []string{"report", "double11"}},
		{"--older", []string{"doctor"}},
		{"--gate", []string{"try"}},
		{"--set", []string{"try", "--set", "a=b"}},
		{"--orders", []string{"rehearse", "--sale", "double11", "--judge-only"}},
		{"--answers", []string{"rehearse", "--sale", "double11", "--judge-only"}},
		{"--require", []string{"rehearse", "--sale", "double11", "--judge-only"}},
		{"--redis", []string{"demo", "--once"}},
		{"--address", []string{"sale", "list"}},
		{"--config", []string{"sale", "list"}},
		{"--adapter", []string{"sale", "list"}},
	} {
		args := append(c.args, c.flag, "")
		r := s.Run(args...)
		if r.Status != 2 || r.Out != "" || !strings.HasSuffix(r.Errors, ": "+c.flag+" is empty: leave it out, or give it a value\n") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if b := sitetest.Do[sitetest.SaleStock](s, "GET", "/stockgate/sales/double11", ""); b.Status != "open" || b.Cell("plain", "") != "100 97 0 2 1" {
		t.Errorf("the sale has changed: %+v", b)
	}
}

// An empty region means that the item has none, as in a tally.
func TestAnEmptyRegionIsNone(t *testing.T) {
	_, app := sitetest.Redis(t)
	s := sitetest.Open(t, app)
	s.OpenSale()
	if out := s.OK("stock", "add", "double11", "plain", "1", "--region", ""); !strings.HasPrefix(out, "plain has 101 units") {
		t.Errorf("%s", out)
	}
}
