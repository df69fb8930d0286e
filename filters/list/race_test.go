//go:build race

package list_test

// large is how many entries a large list has, others how many lookups of other values
// there are: few under the race detector, which takes ten times as long for each. Without
// it, make test runs the same tests at full size.
const large, others = 50_000, 50_000
