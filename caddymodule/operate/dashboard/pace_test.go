package dashboard

import (
	"testing"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// The pace and the movers are what buyers take: an operator who adds or takes out stock is no buyer.
func TestPace(t *testing.T) {
	full := record.Cell{Stock: 1000, Available: 900, Held: 60, InDoubt: 10, Confirmed: 30}
	for name, test := range map[string]struct {
		then record.Cell
		pace float64 // units a second
	}{
		"nothing":              {full, 0},
		"units that are held":  {record.Cell{Stock: 1000, Available: 850, Held: 110, InDoubt: 10, Confirmed: 30}, 5},
		"units that are sold":  {record.Cell{Stock: 1000, Available: 850, Held: 50, InDoubt: 0, Confirmed: 100}, 5},
		"a hold is confirmed":  {record.Cell{Stock: 1000, Available: 900, InDoubt: 10, Confirmed: 90}, 0},
		"holds are released":   {record.Cell{Stock: 1000, Available: 960, InDoubt: 10, Confirmed: 30}, 0},
		"stock is taken out":   {record.Cell{Stock: 950, Available: 850, Held: 60, InDoubt: 10, Confirmed: 30}, 0},
		"stock is added":       {record.Cell{Stock: 2000, Available: 1850, Held: 60, InDoubt: 10, Confirmed: 80}, 5},
		"taken out and sold":   {record.Cell{Stock: 900, Available: 750, Held: 110, InDoubt: 10, Confirmed: 30}, 5},
		"the last one is sold": {record.Cell{Stock: 1000, Held: 960, InDoubt: 10, Confirmed: 30}, 90},
	} {
		s := newSaleReader("double11")
		s.items = map[string]*item{}
		s.put("plain", full, false)
		s.history.add(s.point(0, true, new(counter)))
		s.put("plain", test.then, true)
		s.history.add(s.point(paceOver.Milliseconds(), true, new(counter)))
		if got := s.pace(); got != test.pace {
			t.Errorf("%s: %v a second, want %v", name, got, test.pace)
		}
		if got := int(s.items["plain"].score); got != int(test.pace*paceOver.Seconds()) {
			t.Errorf("%s: the item has moved by %d units", name, got)
		}
	}
}

// How long the stock lasts is known only of a sale that sells.
func TestStockLasts(t *testing.T) {
	s := newSaleReader("double11")
	s.items = map[string]*item{}
	s.put("plain", record.Cell{Stock: 100, Available: 50, Confirmed: 50}, false)
	if left := s.lasts(onSale, 5); left == nil || *left != 10 {
		t.Errorf("on sale: %v", left)
	}
	for _, state := range []string{"paused", "closed", "ended", "draft", "not_started", "lost"} {
		if left := s.lasts(state, 5); left != nil {
			t.Errorf("%s: the stock lasts %v s", state, *left)
		}
	}
	if left := s.lasts(onSale, 0); left != nil {
		t.Errorf("nothing is taken: %v s", *left)
	}
	s.put("plain", record.Cell{Stock: 100, Confirmed: 100}, false)
	if left := s.lasts(onSale, 5); left != nil {
		t.Errorf("nothing is left: %v s", *left)
	}
}

// The log names who did what.
func TestActionsNameWho(t *testing.T) {
	for _, test := range []struct{ kind, cause, who string }{
		{"confirmed", "operator:ann", "ann"},
		{"released", "operator:ann@unix", "ann@unix"},
		{"confirmed", "operator", unnamed},
		{"returned", "back1 operator:ann@unix", "ann@unix"},
		{"returned", "operator operator", unnamed},
		{"paused", "ann@unix", "ann@unix"},
		{"adjusted", "ann@unix", "ann@unix"},
		{"confirmed", "status_201", ""},
		{"confirmed", "operators", ""},
		{"returned", "operator api", ""},
	} {
		var a actions
		a.add(&journal.Movement{Kind: test.kind, Cause: test.cause, Lines: []record.CellUnits{{Cell: "plain", Units: 1}}})
		who := ""
		if len(a.list) > 0 {
			who = a.list[0].Who
		}
		if who != test.who {
			t.Errorf("%s by %q: %q, want %q", test.kind, test.cause, who, test.who)
		}
	}
}
