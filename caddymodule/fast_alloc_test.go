//go:build !race

package caddymodule_test

import "testing"

// TestFastRefusalsDoNotAllocate refuses from memory without any of it.
func TestFastRefusalsDoNotAllocate(t *testing.T) {
	s := openFast(t, "", benchSites+benchOut)
	notAllocating(t, s)
	s.option = "fast_refusals {\nlog 0.0001%\n}"
	if err := s.loadFast("", benchSites+benchOut); err != nil {
		t.Fatal(err)
	}
	notAllocating(t, s)
}

func notAllocating(t *testing.T, s *fastSite) {
	t.Helper()
	s.sellOut()
	for name, request := range benchRequests {
		const times = 1000
		// The edge may ask Redis again, as it does now and then, and what it does beside counts too:
		// on a busy machine that is more.
		for try := 1; ; try++ {
			s.sellOut()
			answered := times
			allocs := testing.AllocsPerRun(5, func() {
				written, _ := refuses(t, request, times)
				answered = min(answered, written)
			})
			if answered == times && allocs <= times/10 { // those of a connection
				break
			}
			if try == 20 {
				t.Errorf("%s: %v allocations for %d refusals", name, allocs, answered)
				break
			}
		}
	}
}
