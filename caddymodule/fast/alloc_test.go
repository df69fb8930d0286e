//go:build !race

package fast_test

import (
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// TestFastRefusalsDoNotAllocate refuses from memory without any of it.
func TestFastRefusalsDoNotAllocate(t *testing.T) {
	s := sitetest.OpenFast(t, "", benchSites+sitetest.BenchOut)
	notAllocating(t, s)
	s.Option = "fast_refusals {\nlog 0.0001%\n}"
	if err := s.LoadFast("", benchSites+sitetest.BenchOut); err != nil {
		t.Fatal(err)
	}
	notAllocating(t, s)
}

func notAllocating(t *testing.T, s *sitetest.FastSite) {
	t.Helper()
	s.SellOut()
	for name, request := range benchRequests {
		const times = 1000
		// The edge may ask Redis again, as it does now and then, and what it does beside counts too:
		// on a busy machine that is more.
		for try := 1; ; try++ {
			s.SellOut()
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

// TestPlacesDoNotAllocate tells where a person stands, again and again on one connection.
func TestPlacesDoNotAllocate(t *testing.T) {
	s := openWaitingSites(t, false, "")
	request := "GET " + waitingPlace(s, "ben") + ofShop + "Accept: */*\r\n\r\n"
	stocktest.Eventually(t, "an edge that has read of the entry", func() bool {
		answered, _ := refuses(t, request, 1)
		return answered == 1
	})
	const times = 1000
	for try := 1; ; try++ {
		answered := times
		allocs := testing.AllocsPerRun(5, func() {
			written, _ := refuses(t, request, times)
			answered = min(answered, written)
		})
		if answered == times && allocs <= times/10 { // a connection takes some
			return
		}
		if try == 20 {
			t.Fatalf("%v allocations for %d answers, %d of them fast", allocs, times, answered)
		}
	}
}
