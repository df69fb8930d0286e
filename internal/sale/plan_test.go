package sale_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

type deltas = []sale.CellDelta

func TestPlanOfANewSale(t *testing.T) {
	want := &sale.Change{
		Deltas: deltas{
			{Cell: "20002001", Delta: 100, New: true},
			{Cell: "20002002@beijing", Delta: 40, New: true},
			{Cell: "20002002@shanghai", Delta: 60, New: true},
		},
		Notes: []string{
			"new sale double11: 2026-11-11T00:00:00+08:00 to 2026-11-12T00:00:00+08:00, timezone Asia/Shanghai",
			"new item 20002001: stock 100, max 2",
			"new item 20002002: regions beijing 40, shanghai 60",
			"new limit units per buyer and sale: max 2",
			"new limit orders per buyer and sale of item 20002001: max 1",
		},
	}
	// There is no status yet: whatever it is called, nothing needs force.
	for _, status := range []sale.Status{"", sale.Draft, sale.Open, sale.Closed} {
		got, err := sale.Plan(nil, status, mustParse(t, double11), false)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v\nwant %+v", status, got, err, want)
		}
	}
}

func TestPlan(t *testing.T) {
	all := []sale.Status{sale.Draft, sale.Open, sale.Paused}
	for _, test := range []struct {
		name     string
		change   func(*sale.Sale)
		statuses []sale.Status
		force    bool
		deltas   deltas
		notes    []string // none: "no change"
		err      string
	}{
		{name: "the same file", statuses: append(all, sale.Closed), change: func(*sale.Sale) {}},
		{name: "the same in another order", statuses: append(all, sale.Closed), change: func(s *sale.Sale) {
			s.Items[0], s.Items[1] = s.Items[1], s.Items[0]
			s.Limits[0], s.Limits[1] = s.Limits[1], s.Limits[0]
		}},
		{name: "the same in other words", statuses: append(all, sale.Closed), change: func(s *sale.Sale) {
			s.StartsAt = s.StartsAt.UTC()
			s.Items[1].Min, s.Items[1].Max = 1, sale.MaxQuantity
		}},
		{name: "more stock", statuses: all, change: func(s *sale.Sale) { s.Items[0].Stock = 120 },
			deltas: deltas{{Cell: "20002001", Delta: 20}}, notes: []string{"item 20002001: stock 100 → 120 (+20)"}},
		{name: "less stock", statuses: all, change: func(s *sale.Sale) { s.Items[0].Stock = 0 },
			deltas: deltas{{Cell: "20002001", Delta: -100}}, notes: []string{"item 20002001: stock 100 → 0 (-100)"}},
		{name: "regions", statuses: all, change: func(s *sale.Sale) {
			s.Items[1].Regions = map[string]int64{"beijing": 45, "canton": 0}
		},
			deltas: deltas{{Cell: "20002002@beijing", Delta: 5}, {Cell: "20002002@canton", New: true}, {Cell: "20002002@shanghai", Delta: -60, Removed: true}},
			notes: []string{"item 20002002: region beijing: stock 40 → 45 (+5)", "item 20002002: new region canton: stock 0",
				"item 20002002: region shanghai removed, with stock 60"}},
		{name: "units moved between regions", statuses: all, change: func(s *sale.Sale) {
			s.Items[1].Regions = map[string]int64{"beijing": 50, "shanghai": 50}
		},
			deltas: deltas{{Cell: "20002002@beijing", Delta: 10}, {Cell: "20002002@shanghai", Delta: -10}},
			notes:  []string{"item 20002002: region beijing: stock 40 → 50 (+10)", "item 20002002: region shanghai: stock 60 → 50 (-10)"}},
		{name: "stock becomes regions", statuses: all, change: func(s *sale.Sale) {
			s.Items[0].Stock, s.Items[0].Regions = 0, map[string]int64{"beijing": 100}
		},
			deltas: deltas{{Cell: "20002001", Delta: -100, Removed: true}, {Cell: "20002001@beijing", Delta: 100, New: true}},
			notes:  []string{"item 20002001: stock 100 → regions beijing 100"}},
		{name: "regions become stock", statuses: all, change: func(s *sale.Sale) {
			s.Items[1].Stock, s.Items[1].Regions = 100, nil
		},
			deltas: deltas{{Cell: "20002002", Delta: 100, New: true}, {Cell: "20002002@beijing", Delta: -40, Removed: true}, {Cell: "20002002@shanghai", Delta: -60, Removed: true}},
			notes:  []string{"item 20002002: regions beijing 40, shanghai 60 → stock 100"}},
		{name: "bounds", statuses: all, change: func(s *sale.Sale) { s.Items[0].Min, s.Items[0].Max = 2, 0 },
			notes: []string{"item 20002001: min 1 → 2", "item 20002001: max 2 → 10000"}},
		{name: "ids", statuses: all, change: func(s *sale.Sale) { s.Items[0].IDs = []string{"1", "v-1"} },
			notes: []string{"item 20002001: ids none → 1, v-1"}},
		{name: "an id that was an item's sku", statuses: all, change: func(s *sale.Sale) {
			s.Items[1] = sale.Item{SKU: "1", IDs: []string{"20002002"}, Stock: 5}
		},
			deltas: deltas{{Cell: "1", Delta: 5, New: true}, {Cell: "20002002@beijing", Delta: -40, Removed: true}, {Cell: "20002002@shanghai", Delta: -60, Removed: true}},
			notes:  []string{"new item 1: stock 5, ids 20002002", "item 20002002: removed, with regions beijing 40, shanghai 60"}},
		{name: "a new item and one less", statuses: all, change: func(s *sale.Sale) {
			s.Items[1] = sale.Item{SKU: "1", Stock: 5, Min: 2}
		},
			deltas: deltas{{Cell: "1", Delta: 5, New: true}, {Cell: "20002002@beijing", Delta: -40, Removed: true}, {Cell: "20002002@shanghai", Delta: -60, Removed: true}},
			notes:  []string{"new item 1: stock 5, min 2", "item 20002002: removed, with regions beijing 40, shanghai 60"}},
		{name: "the window", statuses: all, change: func(s *sale.Sale) {
			s.StartsAt, s.EndsAt = s.StartsAt.Add(-time.Hour), s.EndsAt.Add(time.Hour)
		}, notes: []string{"starts_at 2026-11-11T00:00:00+08:00 → 2026-11-10T23:00:00+08:00", "ends_at 2026-11-12T00:00:00+08:00 → 2026-11-12T01:00:00+08:00"}},
		{name: "a limit's max", statuses: all, change: func(s *sale.Sale) { s.Limits[0].Max = 3 },
			notes: []string{"limit units per buyer and sale: max 2 → 3"}},
		{name: "a limit less", statuses: all, change: func(s *sale.Sale) { s.Limits = s.Limits[:1] },
			notes: []string{"limit orders per buyer and sale of item 20002001: removed, was max 1"}},

		{name: "time zone of a draft", statuses: all[:1], change: func(s *sale.Sale) { s.Timezone = "" },
			notes: []string{"timezone Asia/Shanghai → UTC"}},
		{name: "time zone", statuses: all[1:], force: true, change: func(s *sale.Sale) { s.Timezone = "" },
			err: "timezone: stays Asia/Shanghai once the sale has been opened, because limits are counted by it"},
		{name: "a new limit of a draft", statuses: all[:1], change: func(s *sale.Sale) { s.Limits[1].SKU = "20002002" },
			notes: []string{"new limit orders per buyer and sale of item 20002002: max 1", "limit orders per buyer and sale of item 20002001: removed, was max 1"}},
		{name: "a new limit", statuses: all[1:], change: func(s *sale.Sale) { s.Limits[1].SKU = "" },
			err: "limit orders per buyer and sale: has not counted what was sold while it was not in the file, so buyers who have bought before may buy as much again: repeat with --force if that is meant"},
		{name: "a new limit by force", statuses: all[1:], force: true, change: func(s *sale.Sale) { s.Limits[1].SKU = "" },
			notes: []string{"new limit orders per buyer and sale: max 1, has not counted what was sold while it was not in the file", "limit orders per buyer and sale of item 20002001: removed, was max 1"}},
		{name: "a union of a draft", statuses: all[:1], change: func(s *sale.Sale) { s.Limits[0].Per = "phone+buyer" },
			notes: []string{"new limit units per buyer+phone and sale: max 2", "limit units per buyer and sale: removed, was max 2"}},
		{name: "a union", statuses: all[1:], change: func(s *sale.Sale) { s.Limits[0].Per = "buyer+phone" },
			err: "limit units per buyer+phone and sale: has not counted what was sold while it was not in the file, so buyers who have bought before may buy as much again: repeat with --force if that is meant"},
		{name: "a union by force", statuses: all[1:], force: true, change: func(s *sale.Sale) { s.Limits[0].Per = "buyer+phone" },
			notes: []string{"new limit units per buyer+phone and sale: max 2, has not counted what was sold while it was not in the file", "limit units per buyer and sale: removed, was max 2"}},
		{name: "another window", statuses: all[1:], change: func(s *sale.Sale) { s.Limits[0].Every = "day" },
			err: "limit units per buyer and day: has not counted what was sold while it was not in the file, so buyers who have bought before may buy as much again: repeat with --force if that is meant"},
		{name: "a limit of one order", statuses: all, change: func(s *sale.Sale) {
			s.Limits = append(s.Limits, sale.Limit{Per: "buyer", Every: "order", Count: "units", Max: 1})
		}, notes: []string{"new limit units per buyer and order: max 1"}},
		{name: "missing in other words", statuses: append(all, sale.Closed), change: func(s *sale.Sale) { s.Missing = sale.RefuseMissing }},
		{name: "missing of a draft", statuses: all[:1], change: func(s *sale.Sale) { s.Missing = sale.SkipMissing },
			notes: []string{"missing refuse → skip"}},
		{name: "missing", statuses: all[1:], change: func(s *sale.Sale) { s.Missing = sale.SkipMissing },
			err: "missing: refuse → skip: who leaves an identity out is no longer limited by it: repeat with --force if that is meant"},
		{name: "missing by force", statuses: all[1:], force: true, change: func(s *sale.Sale) { s.Missing = sale.SkipMissing },
			notes: []string{"missing refuse → skip"}},
		{name: "unpaid", statuses: all, change: func(s *sale.Sale) { s.Unpaid = &sale.Unpaid{Per: "buyer+ip", Ended: 3} },
			notes: []string{"unpaid default → per buyer+ip, at_once 1, ended 3 within 1h"}},
		{name: "unpaid off", statuses: all, change: func(s *sale.Sale) { s.Unpaid = &sale.Unpaid{Off: true} },
			notes: []string{"unpaid default → off"}},
		{name: "max_hold in other words", statuses: append(all, sale.Closed), change: func(s *sale.Sale) { s.MaxHold = sale.Span(time.Hour) }},
		{name: "max_hold", statuses: all, change: func(s *sale.Sale) { s.MaxHold = sale.Span(90 * time.Minute) },
			notes: []string{"max_hold 1h → 1h30m"}},
		{name: "max_hold of a closed sale", statuses: []sale.Status{sale.Closed}, change: func(s *sale.Sale) { s.MaxHold = sale.Span(time.Minute) },
			err: "sale double11 is closed: it does not change any more"},
		{name: "two errors", statuses: all[1:], change: func(s *sale.Sale) { s.Timezone, s.Limits[1].SKU = "", "" },
			err: "timezone: stays Asia/Shanghai once the sale has been opened, because limits are counted by it\n" +
				"limit orders per buyer and sale: has not counted what was sold while it was not in the file, so buyers who have bought before may buy as much again: repeat with --force if that is meant"},
		{name: "another sale", statuses: append(all, sale.Closed), force: true, change: func(s *sale.Sale) { s.ID = "double12" },
			err: "the file is about sale double12, not double11: a sale keeps its id"},
		{name: "a cell changes hands", statuses: all, force: true, change: func(s *sale.Sale) {
			s.Items[0].SKU, s.Items[1] = "20002002@beijing", sale.Item{SKU: "x", Stock: 1}
			s.Limits = s.Limits[:1]
		}, err: "item 20002002@beijing: its stock would be called 20002002@beijing, as that of item 20002002 now: remove that item first"},
		{name: "closed", statuses: []sale.Status{sale.Closed}, force: true, change: func(s *sale.Sale) { s.EndsAt = s.EndsAt.Add(time.Hour) },
			err: "sale double11 is closed: it does not change any more"},
		{name: "an unknown status", statuses: []sale.Status{"", "frozen"}, change: func(s *sale.Sale) { s.Timezone = "" },
			err: "timezone: stays Asia/Shanghai once the sale has been opened, because limits are counted by it"},
	} {
		for _, status := range test.statuses {
			t.Run(test.name+", "+string(status), func(t *testing.T) {
				value := double11Value()
				test.change(&value)
				applied, next := mustParse(t, double11), mustNew(t, value)
				got, err := sale.Plan(applied, status, next, test.force)
				if test.err != "" {
					if err == nil || err.Error() != test.err || got != nil {
						t.Errorf("\ngot  %+v, %v\nwant %s", got, err, test.err)
					}
					return
				}
				want := &sale.Change{Deltas: test.deltas, Notes: test.notes}
				if test.notes == nil {
					want.Notes, want.Same = []string{"no change"}, true
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("\ngot  %+v, %v\nwant %+v", got, err, want)
				}
				checkDeltas(t, applied, next, got.Deltas)
			})
		}
	}
}

// checkDeltas checks the rule that the deltas must keep: what was loaded, plus
// the deltas, is what will be loaded.
func checkDeltas(t *testing.T, applied, next *sale.Sale, changes deltas) {
	t.Helper()
	cells := applied.Cells()
	for _, d := range changes {
		if _, had := cells[d.Cell]; had == d.New {
			t.Errorf("%+v: was there before: %v", d, had)
		}
		cells[d.Cell] += d.Delta
		if d.Removed {
			if cells[d.Cell] != 0 {
				t.Errorf("%+v leaves %d units", d, cells[d.Cell])
			}
			delete(cells, d.Cell)
		}
	}
	if want := next.Cells(); !reflect.DeepEqual(cells, want) {
		t.Errorf("the deltas lead to %v, want %v", cells, want)
	}
}

func TestPlanOfUnionsAndMissing(t *testing.T) {
	plan := func(applied, next string, force bool) (string, error) {
		c, err := sale.Plan(mustParse(t, applied), sale.Open, mustParse(t, next), force)
		if err != nil {
			return "", err
		}
		return strings.Join(c.Notes, "\n"), nil
	}
	union := func(per string) string {
		return limited("{per: " + per + ", every: day, count: units, max: 1}")
	}
	if notes, err := plan(union("[buyer, phone]"), union("[phone, buyer]"), false); err != nil || notes != "no change" {
		t.Errorf("another order of a union: %q, %v", notes, err)
	}
	skip := union("phone") + "missing: skip\n"
	want := "missing: skip → refuse: what was bought without an identity was not counted by it, and such attempts are refused now: repeat with --force if that is meant"
	if notes, err := plan(skip, union("phone"), false); err == nil || err.Error() != want {
		t.Errorf("refusing again: %q, %v", notes, err)
	}
	if notes, err := plan(skip, union("phone"), true); err != nil || notes != "missing skip → refuse" {
		t.Errorf("refusing again by force: %q, %v", notes, err)
	}
	change, err := sale.Plan(nil, "", mustParse(t, skip), false)
	if err != nil || change.Notes[len(change.Notes)-1] != "missing skip" {
		t.Errorf("a new sale: %+v, %v", change, err)
	}
}

func TestPlanGoesThereAndBack(t *testing.T) {
	a, b := mustParse(t, double11), mustParse(t, strings.NewReplacer("stock: 100", "regions: {x: 1}", "beijing", "canton").Replace(double11))
	there, err := sale.Plan(a, sale.Open, b, false)
	if err != nil {
		t.Fatal(err)
	}
	checkDeltas(t, a, b, there.Deltas)
	back, err := sale.Plan(b, sale.Open, a, false)
	if err != nil {
		t.Fatal(err)
	}
	checkDeltas(t, b, a, back.Deltas)
	for i, d := range there.Deltas {
		mirrored := sale.CellDelta{Cell: d.Cell, Delta: -d.Delta, New: d.Removed, Removed: d.New}
		if back.Deltas[i] != mirrored {
			t.Errorf("back is %+v, want %+v", back.Deltas[i], mirrored)
		}
	}
}

// Purchases of before are taken over once, into a draft, and limits have counted them.
func TestPlanMovedIn(t *testing.T) {
	file := func(more string) *sale.Sale {
		t.Helper()
		s, err := sale.Parse([]byte("{id: s, starts_at: 2027-01-01T00:00:00Z, ends_at: 2027-01-02T00:00:00Z, items: [{sku: a, stock: 5}]" + more + "}"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const some, all = ", moved_in: {purchases: 2, units: 3}", ", moved_in: {purchases: 2, units: 3, done: true}"
	const limit = ", limits: [{per: buyer, every: sale, max: 1, count: units}]"
	for name, c := range map[string]struct {
		was    *sale.Sale
		status sale.Status
		will   *sale.Sale
		says   string // a note, or the error
	}{
		"a new sale":          {nil, sale.Draft, file(some), "moved in: 2 purchases with 3 units, made before this sale"},
		"a draft":             {file(""), sale.Draft, file(some), "moved in: 2 purchases with 3 units, made before this sale"},
		"all are there":       {file(some), sale.Draft, file(all), "moved in: redis has all 2 purchases with 3 units"},
		"again":               {file(all), sale.Open, file(all), "no change"},
		"a file without":      {file(all), sale.Open, file(""), "no change"},
		"an open sale":        {file(""), sale.Paused, file(some), "only into a draft"},
		"others":              {file(all), sale.Draft, file(", moved_in: {purchases: 3, units: 4}"), "are not taken over again"},
		"a limit comes later": {file(all), sale.Draft, file(all + limit), "has not counted what was sold while it was not in the file"},
		"the zone":            {file(all), sale.Draft, file(all + ", timezone: Asia/Shanghai"), "timezone: stays UTC"},
	} {
		change, err := sale.Plan(c.was, c.status, c.will, false)
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(change.Notes, "; ")
		}
		if !strings.Contains(got, c.says) {
			t.Errorf("%s: %s, it should say %q", name, got, c.says)
		}
	}
}
