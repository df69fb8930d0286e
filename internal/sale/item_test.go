package sale_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

func TestItemFindsBySKU(t *testing.T) {
	parsed, literal := mustParse(t, double11), double11Value()
	for name, s := range map[string]*sale.Sale{"parsed": parsed, "literal": &literal} {
		for i := range s.Items {
			if item, ok := s.Item(s.Items[i].SKU); !ok || item != &s.Items[i] {
				t.Errorf("%s: item %s is not found", name, s.Items[i].SKU)
			}
		}
		for _, sku := range []string{"", "2000200", "20002002@beijing"} {
			if item, ok := s.Item(sku); ok || item != nil {
				t.Errorf("%s: there is an item %q: %+v", name, sku, item)
			}
		}
	}
	if item, ok := new(sale.Sale).Item("a"); ok {
		t.Errorf("an empty sale has an item: %+v", item)
	}
}

func TestItemFollowsACopyWithOtherItems(t *testing.T) {
	next := *mustParse(t, double11)
	next.Items = []sale.Item{{SKU: "a", Stock: 1}, {SKU: "b", Stock: 1}}
	if item, ok := next.Item("b"); !ok || item != &next.Items[1] {
		t.Errorf("the copy's item is not found: %+v", item)
	}
	if item, ok := next.Item("20002001"); ok {
		t.Errorf("the copy finds the original's item %+v", item)
	}
	next.Items = nil
	if item, ok := next.Item("b"); ok {
		t.Errorf("a copy without items finds %+v", item)
	}
}

func TestCells(t *testing.T) {
	s := mustParse(t, double11)
	want := map[string]int64{"20002001": 100, "20002002@beijing": 40, "20002002@shanghai": 60}
	if got := s.Cells(); !maps.Equal(got, want) {
		t.Errorf("cells of the sale: %v, want %v", got, want)
	}
	for i, want := range [][]string{{"20002001"}, {"20002002@beijing", "20002002@shanghai"}} {
		if got := s.Items[i].Cells(); !reflect.DeepEqual(got, want) {
			t.Errorf("cells of item %d: %v, want %v", i, got, want)
		}
	}
}

func TestLinesDrawOnTheCellsOfTheirItem(t *testing.T) {
	cells := mustParse(t, double11).Cells()
	for _, line := range []sale.Line{{SKU: "20002001", Quantity: 1}, {SKU: "20002002", Region: "beijing", Quantity: 1}} {
		if _, ok := cells[line.Cell()]; !ok {
			t.Errorf("%+v draws on %q, which no item loads", line, line.Cell())
		}
	}
}

func TestEqual(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*sale.Sale)
		want   bool
	}{
		"the same":      {func(*sale.Sale) {}, true},
		"other offset":  {func(s *sale.Sale) { s.StartsAt = s.StartsAt.UTC() }, true},
		"defaults":      {func(s *sale.Sale) { s.Items[1].Min, s.Items[1].Max = 1, sale.MaxQuantity }, true},
		"id":            {func(s *sale.Sale) { s.ID = "x" }, false},
		"start":         {func(s *sale.Sale) { s.StartsAt = s.StartsAt.Add(1) }, false},
		"end":           {func(s *sale.Sale) { s.EndsAt = s.EndsAt.Add(1) }, false},
		"time zone":     {func(s *sale.Sale) { s.Timezone = "" }, false},
		"sku":           {func(s *sale.Sale) { s.Items[0].SKU = "x" }, false},
		"stock":         {func(s *sale.Sale) { s.Items[0].Stock++ }, false},
		"region":        {func(s *sale.Sale) { s.Items[1].Regions["beijing"]++ }, false},
		"min":           {func(s *sale.Sale) { s.Items[0].Min = 2 }, false},
		"max":           {func(s *sale.Sale) { s.Items[0].Max = 3 }, false},
		"limit":         {func(s *sale.Sale) { s.Limits[0].Max++ }, false},
		"fewer limits":  {func(s *sale.Sale) { s.Limits = s.Limits[:1] }, false},
		"order of them": {func(s *sale.Sale) { s.Limits[0], s.Limits[1] = s.Limits[1], s.Limits[0] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			value := double11Value()
			test.change(&value)
			if got := mustParse(t, double11).Equal(&value); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	var none *sale.Sale
	if !none.Equal(nil) || none.Equal(new(sale.Sale)) || new(sale.Sale).Equal(nil) {
		t.Error("no sale must equal no sale, and nothing else")
	}
}

func TestLimitID(t *testing.T) {
	limit := sale.Limit{Per: "buyer", Every: "sale", Count: "units", Max: 2}
	if got, want := limit.ID(), "buyer:sale:units"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	limit.SKU = "20002001"
	if got, want := limit.ID(), "buyer:sale:units:20002001"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	limit.Max = 3
	if got, want := limit.ID(), "buyer:sale:units:20002001"; got != want {
		t.Errorf("the maximum is no part of the kind: got %s, want %s", got, want)
	}

	kinds := make(map[string]sale.Limit)
	parts := []string{"", "a", "b", "a:b", ":", "|", "%", "%3A", "a b", "A", "é", "a\x00", "a@b", "a/b"}
	for _, per := range parts {
		for _, count := range parts {
			for _, sku := range parts {
				l := sale.Limit{Per: sale.Identities(per), Every: "sale", Count: count, SKU: sku}
				id := l.ID()
				if other, twice := kinds[id]; twice {
					t.Fatalf("%+v and %+v are both %q", l, other, id)
				}
				kinds[id] = l
				if strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '|' }) {
					t.Errorf("%+v is %q: not plain ASCII without space and '|'", l, id)
				}
			}
		}
	}
}

func TestKindsHoldEveryReasonOnce(t *testing.T) {
	seen := make(map[sale.Reason]bool)
	for _, k := range sale.Kinds {
		if seen[k.Reason] {
			t.Errorf("%s is there twice", k.Reason)
		}
		seen[k.Reason] = true
		if k.Status < 400 || k.Status > 599 || k.Title == "" {
			t.Errorf("%s has status %d and title %q", k.Reason, k.Status, k.Title)
		}
		if got, ok := sale.KindOf(k.Reason); !ok || got != k {
			t.Errorf("KindOf(%s) is %+v, %v", k.Reason, got, ok)
		}
	}
	if k, ok := sale.KindOf("nonsense"); ok {
		t.Errorf("nonsense is a reason: %+v", k)
	}
}
