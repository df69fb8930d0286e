// Package measure turns program output and kernel counters into numbers, and numbers
// into medians, ratios and a table. It starts no processes.
package measure

import (
	"math"
	"slices"
)

// Spread is the spread of several runs.
type Spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// Over returns the spread of values; without values all of it is 0. The median of an even
// number of values is the mean of the two in the middle.
func Over(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Least: sorted[0], Most: sorted[n-1]}
}

// Ratio is a divided by b, or NaN where b is 0: nothing was measured there.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
