package sale_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

// A sale is read from its file, and asked what it says to an attempt. What is left and
// what a buyer has had so far is in Redis.
func Example() {
	s, err := sale.Parse([]byte(`
id: double11
starts_at: 2026-11-11T00:00:00+08:00
ends_at: 2026-11-12T00:00:00+08:00
items:
  - {sku: "20002001", stock: 1000, max: 2}
limits:
  - {per: buyer, every: sale, count: units, max: 2}
`))
	if err != nil {
		panic(err)
	}
	fmt.Println(s.ID, s.Cells())

	noon := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	early := s.RefusalAt(sale.Open, noon.AddDate(0, 0, -1))
	fmt.Println("the day before:", early.Reason)
	fmt.Println("during the sale, refused:", s.RefusalAt(sale.Open, noon) != nil)

	for _, quantity := range []int64{1, 3} {
		lines, refusal := s.Resolve(&sale.Attempt{Buyer: "alice", Lines: []sale.Line{{SKU: "20002001", Quantity: quantity}}})
		if refusal != nil {
			fmt.Println(quantity, "units:", refusal.Reason)
			continue
		}
		fmt.Println(quantity, "unit:", lines)
	}
	// Output:
	// double11 map[20002001:1000]
	// the day before: not_started
	// during the sale, refused: false
	// 1 unit: [{20002001 1 }]
	// 3 units: quantity
}

// A file is read as a whole: the error lists everything that is wrong with it.
func ExampleProblems() {
	_, err := sale.Parse([]byte(`id: double11
starts_at: 2026-11-11T00:00:00+08:00
ends_at: 2026-11-10T00:00:00+08:00
items:
  - {sku: a, stock: 1_000}
`))
	problems, ok := errors.AsType[sale.Problems](err)
	if !ok {
		panic(err)
	}
	for _, p := range problems {
		fmt.Printf("%d %s: %s\n", p.Line, p.Field, p.Text)
	}
	// Output:
	// 3 ends_at: must be later than starts_at (2026-11-11T00:00:00+08:00)
	// 5 items[0].stock: must be a whole number in plain digits such as 1000, not "1_000"
}

// Plan says what a changed file would do to a sale, before it is applied.
func ExamplePlan() {
	starts := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	file := func(units int64) *sale.Sale {
		s, err := sale.New(sale.Sale{ID: "double11", StartsAt: starts, EndsAt: starts.AddDate(0, 0, 1), Items: []sale.Item{{SKU: "a", Stock: units}}})
		if err != nil {
			panic(err)
		}
		return s
	}
	change, err := sale.Plan(file(100), sale.Open, file(150), false)
	if err != nil {
		panic(err)
	}
	for _, note := range change.Notes {
		fmt.Println(note)
	}
	// Output:
	// item a: stock 100 → 150 (+50)
}
