package measure_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/bench/measure"
)

func spread(f float64) measure.Spread { return measure.Spread{Median: f, Least: f, Most: f} }

// TestTable: what no row has is no column, and ratios are to the first row.
func TestTable(t *testing.T) {
	c := measure.Case{Name: "sold-out", About: "one item", Rows: []measure.Row{
		{Peer: "nginx", Rate: spread(50_000), P99: spread(1.25)},
		{Peer: "gate-fast", Rate: spread(1_075_000), P99: spread(0.5), Calls: spread(0.25)},
	}}
	c.Relate()
	var out strings.Builder
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `sold-out: one item
  peer       per second           least to most  ratio  p99 ms  script calls each
  nginx          50,000        50,000 to 50,000   1.00    1.25                  -
  gate-fast   1,075,000  1,075,000 to 1,075,000  21.50    0.50              0.250
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestGoals(t *testing.T) {
	var out strings.Builder
	if err := measure.PrintGoals(&out, []measure.Judged{
		{Case: "a", What: "b to c", Goal: "at least 1.30", Got: 1.5, Met: true, ByCPU: 1.4},
		{Case: "a", What: "b", Goal: "at most 0.25", Got: 0.5},
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"goal wanted measured by cpu", "a: b to c at least 1.30 1.50 met 1.40", "a: b at most 0.25 0.50 MISSED"}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if got := strings.Join(strings.Fields(line), " "); i >= len(want) || got != want[i] {
			t.Errorf("line %d is %q", i, got)
		}
	}
}

func TestThousands(t *testing.T) {
	for f, want := range map[float64]string{0: "", 1: "1", 999.4: "999", 999.6: "1,000", 123456: "123,456", 1234567: "1,234,567"} {
		if got := measure.Thousands(f); got != want {
			t.Errorf("%v is written %q, not %q", f, got, want)
		}
	}
}
