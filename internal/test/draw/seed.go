// Package draw seeds tests that draw their cases at random.
package draw

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns the seed of a test's draws, and logs it. RAPID_SEED sets it, as it does for tests
// that use rapid; without it, and at 0, the seed is another one each time. A value that is no
// number fails the test.
func Seed(t testing.TB) uint64 {
	t.Helper()
	var seed uint64
	if text := os.Getenv("RAPID_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 0, 64); err != nil {
			t.Fatalf("RAPID_SEED: %v", err)
		}
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("RAPID_SEED=%d draws the same again", seed)
	return seed
}

// Times returns how many cases a test draws: few, or many where DRAW is "many".
func Times(few, many int) int {
	if os.Getenv("DRAW") == "many" {
		return many
	}
	return few
}
