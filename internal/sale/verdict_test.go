package sale_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

func TestVerdict(t *testing.T) {
	s := mustParse(t, double11)
	before, start, end := s.StartsAt.Add(-time.Minute), s.StartsAt, s.EndsAt
	last := end.Add(-1)
	notStarted := func(seconds int64) *sale.Refusal {
		return &sale.Refusal{Reason: sale.NotStarted, RetryAfter: seconds}
	}
	for _, test := range []struct {
		name   string
		status sale.Status
		now    time.Time
		want   *sale.Refusal
	}{
		{"open, a minute before", sale.Open, before, notStarted(60)},
		{"open, a moment before", sale.Open, start.Add(-1), notStarted(1)},
		{"open, a second and a bit before", sale.Open, start.Add(-time.Second - 1), notStarted(2)},
		{"open, at the start", sale.Open, start, nil},
		{"open, in another zone", sale.Open, start.UTC(), nil},
		{"open, the last moment", sale.Open, last, nil},
		{"open, at the end", sale.Open, end, sale.Refuse(sale.Ended)},
		{"open, long after", sale.Open, end.AddDate(50, 0, 0), sale.Refuse(sale.Ended)},
		{"open, at the beginning of time", sale.Open, time.Time{}, notStarted(9223372037)},
		{"draft before", sale.Draft, before, notStarted(0)},
		{"draft in the window", sale.Draft, start, notStarted(0)},
		{"draft after", sale.Draft, end, sale.Refuse(sale.Ended)},
		{"paused before", sale.Paused, before, notStarted(60)},
		{"paused in the window", sale.Paused, start, sale.Refuse(sale.PausedSale)},
		{"paused after", sale.Paused, end, sale.Refuse(sale.Ended)},
		{"closed before", sale.Closed, before, sale.Refuse(sale.ClosedSale)},
		{"closed in the window", sale.Closed, start, sale.Refuse(sale.ClosedSale)},
		{"closed after", sale.Closed, end, sale.Refuse(sale.ClosedSale)},
		{"no status", "", start, sale.Refuse(sale.Unavailable)},
		{"a later version's status", "frozen", start, sale.Refuse(sale.Unavailable)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := s.RefusalAt(test.status, test.now); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestVerdictAllocatesNothingInARush(t *testing.T) {
	s := mustParse(t, double11)
	for _, status := range []sale.Status{sale.Draft, sale.Open, sale.Paused, sale.Closed} {
		for _, now := range []time.Time{s.StartsAt, s.EndsAt} {
			if n := testing.AllocsPerRun(100, func() { s.RefusalAt(status, now) }); n != 0 {
				t.Errorf("%s at %s: %v allocations", status, now, n)
			}
		}
	}
}

func TestResolve(t *testing.T) {
	s := mustParse(t, `
id: s
starts_at: 2026-11-11T00:00:00Z
ends_at: 2026-11-12T00:00:00Z
items:
  - {sku: a, stock: 100, min: 2, max: 5}
  - {sku: b, regions: {bj: 40, sh: 60}, max: 3}
  - {sku: c, stock: 0}
  - {sku: d, ids: ["1", v-1], stock: 5, max: 3}
  - {sku: e, ids: ["2"], regions: {bj: 5}}
`)
	type lines = []sale.Line
	of := func(sku string, n int64, region string) sale.Line {
		return sale.Line{SKU: sku, Quantity: n, Region: region}
	}
	no := func(reason sale.Reason, sku, detail string) *sale.Refusal {
		return &sale.Refusal{Reason: reason, SKU: sku, Detail: detail}
	}
	for _, test := range []struct {
		name    string
		region  string
		lines   lines
		want    lines
		refusal *sale.Refusal
	}{
		{"one line", "", lines{of("a", 2, "")}, lines{of("a", 2, "")}, nil},
		{"a region that does not matter", "bj", lines{of("a", 2, "xx")}, lines{of("a", 2, "")}, nil},
		{"the attempt's region", "bj", lines{of("b", 1, "")}, lines{of("b", 1, "bj")}, nil},
		{"the line's own region", "bj", lines{of("b", 1, "sh")}, lines{of("b", 1, "sh")}, nil},
		{"equal lines are summed first", "bj", lines{of("a", 1, ""), of("c", 1, ""), of("a", 1, "sh"), of("b", 1, "bj"), of("b", 1, "")},
			lines{of("a", 2, ""), of("c", 1, ""), of("b", 2, "bj")}, nil},
		{"two regions are two lines", "", lines{of("b", 1, "sh"), of("b", 2, "bj")}, lines{of("b", 1, "sh"), of("b", 2, "bj")}, nil},
		{"no stock is not checked here", "", lines{of("c", 10_000, "")}, lines{of("c", 10_000, "")}, nil},

		{"an id", "", lines{of("1", 2, "")}, lines{of("d", 2, "")}, nil},
		{"an id in a region", "bj", lines{of("2", 2, "")}, lines{of("e", 2, "bj")}, nil},
		{"several names of one item", "", lines{of("1", 1, ""), of("a", 2, ""), of("d", 1, ""), of("v-1", 1, "")}, lines{of("d", 3, ""), of("a", 2, "")}, nil},
		{"too many under several names", "", lines{of("1", 2, ""), of("d", 2, "")}, nil, no(sale.Quantity, "d", "one order may have at most 3 units of it")},
		{"an id without a region", "", lines{of("2", 1, "")}, nil, no(sale.UnknownRegion, "2", "")},

		{"no lines", "", nil, nil, no(sale.Malformed, "", "the order has no lines")},
		{"51 lines", "", make(lines, 51), nil, no(sale.Malformed, "", "the order has more than 50 lines")},
		{"unknown item", "", lines{of("a", 2, ""), of("x", 0, "")}, nil, no(sale.UnknownItem, "x", "")},
		{"a cell is no item", "", lines{of("b@bj", 1, "")}, nil, no(sale.UnknownItem, "b@bj", "")},
		{"no region", "", lines{of("b", 1, "")}, nil, no(sale.UnknownRegion, "b", "")},
		{"unknown region", "bj", lines{of("b", 1, "xx")}, nil, no(sale.UnknownRegion, "b", "")},
		{"unknown region of the attempt", "xx", lines{of("b", 1, "")}, nil, no(sale.UnknownRegion, "b", "")},
		{"unknown item before quantity", "", lines{of("a", 99, ""), of("x", 1, "")}, nil, no(sale.UnknownItem, "x", "")},
		{"too few", "", lines{of("a", 1, "")}, nil, no(sale.Quantity, "a", "one order must have at least 2 units of it")},
		{"too many", "", lines{of("c", 1, ""), of("a", 6, "")}, nil, no(sale.Quantity, "a", "one order may have at most 5 units of it")},
		{"too many together", "", lines{of("a", 3, ""), of("a", 3, "")}, nil, no(sale.Quantity, "a", "one order may have at most 5 units of it")},
		{"too many over regions", "", lines{of("b", 2, "bj"), of("b", 2, "sh")}, nil, no(sale.Quantity, "b", "one order may have at most 3 units of it")},
		{"zero", "", lines{of("c", 0, "")}, nil, no(sale.Quantity, "c", "one line must have 1 to 10000 units")},
		{"zero beside enough", "", lines{of("c", 1, ""), of("c", 0, "")}, nil, no(sale.Quantity, "c", "one line must have 1 to 10000 units")},
		{"negative beside too many", "", lines{of("a", 9, ""), of("a", -5, "")}, nil, no(sale.Quantity, "a", "one line must have 1 to 10000 units")},
		{"overflow", "", lines{of("a", 1<<62, ""), of("a", 1<<62, ""), of("a", 1<<62, ""), of("a", 1<<62+3, "")}, nil,
			no(sale.Quantity, "a", "one line must have 1 to 10000 units")},
	} {
		t.Run(test.name, func(t *testing.T) {
			attempt := &sale.Attempt{Region: test.region, Lines: append(lines(nil), test.lines...)}
			got, refusal := s.Resolve(attempt)
			if !reflect.DeepEqual(got, test.want) || !reflect.DeepEqual(refusal, test.refusal) {
				t.Errorf("got %+v, %+v\nwant %+v, %+v", got, refusal, test.want, test.refusal)
			}
			if !reflect.DeepEqual(attempt.Lines, append(lines(nil), test.lines...)) {
				t.Errorf("the attempt changed: %+v", attempt.Lines)
			}
		})
	}
}

func TestResolveOfTheLargestAttempt(t *testing.T) {
	value := double11Value()
	value.Items = nil
	value.Limits = nil
	var attempt sale.Attempt
	for i := range sale.MaxLines {
		sku := string(rune('A' + i))
		value.Items = append(value.Items, sale.Item{SKU: sku, Stock: 1})
		attempt.Lines = append(attempt.Lines, sale.Line{SKU: sku, Quantity: sale.MaxQuantity})
	}
	got, refusal := mustNew(t, value).Resolve(&attempt)
	if refusal != nil || !reflect.DeepEqual(got, attempt.Lines) {
		t.Errorf("got %+v, %+v", got, refusal)
	}
}

func TestResolveAllocatesOnce(t *testing.T) {
	s := mustParse(t, double11)
	for name, line := range map[string]sale.Line{
		"sold":    {SKU: "20002001", Quantity: 1},
		"unknown": {SKU: "x", Quantity: 1},
		"region":  {SKU: "20002002", Quantity: 1},
	} {
		attempt := &sale.Attempt{Lines: []sale.Line{line}}
		if n := testing.AllocsPerRun(100, func() { s.Resolve(attempt) }); n > 1 {
			t.Errorf("%s: %v allocations, want at most 1", name, n)
		}
	}
}
