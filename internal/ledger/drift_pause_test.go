package ledger_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
)

// TestDriftPause bounds the cost of checking cells: a thousand cells a second per sale, and an
// alarm within seconds where there are few.
func TestDriftPause(t *testing.T) {
	for cells, want := range map[int]time.Duration{0: 4 * time.Second, 4_000: 4 * time.Second, 4_001: 4001 * time.Millisecond, 100_000: 100 * time.Second} {
		if got := ledger.DriftPause(cells); got != want {
			t.Errorf("%d cells are left alone for %v, want %v", cells, got, want)
		}
	}
}
