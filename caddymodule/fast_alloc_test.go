//go:build !race

package caddymodule_test

import (
	"testing"

	"github.com/stockgate/stockgate/caddymodule"
)

// TestFastRefusalsDoNotAllocate refuses from memory without any of it.
func TestFastRefusalsDoNotAllocate(t *testing.T) {
	s := openFast(t, "", benchSites+benchOut)
	s.sellOut()
	judge := caddymodule.FastJudge()
	for name, request := range benchRequests {
		s.sellOut()                  // or the edge would ask Redis again, as it does now and then
		refuse(t, judge, request, 2) // what is made once
		const times = 1000
		allocs := testing.AllocsPerRun(5, func() { refuse(t, judge, request, times) })
		if allocs > times/10 { // those of a connection
			t.Errorf("%s: %v allocations for %d refusals", name, allocs, times)
		}
	}
}
