//go:build race

package list_test

// large is how many entries a large list has under the race detector, which takes
// ten times as long for each.
const large = 500_000
