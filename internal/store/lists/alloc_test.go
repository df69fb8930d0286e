//go:build !race

package lists_test

import (
	"testing"

	"github.com/stockgate/stockgate/filters/list"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// TestListLookupsDoNotAllocate covers the path of values that are not listed.
func TestListLookupsDoNotAllocate(t *testing.T) {
	l := mirror(t, stocktest.Options(redistest.Embedded(t)), "bad")
	l.add(t, "bad", "alice", "phone:1555", "10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32")
	stocktest.Eventually(t, "alice", func() bool { return l.has(t, list.Any, "alice") })
	l.complete(t)
	for _, c := range [][2]string{{list.Phone, "1666"}, {list.Any, "bob"}, {list.Buyer, "alice"}, {list.IP, "11.1.1.1"}, {list.IP, "2002:db8::1"}} {
		ctx := stocktest.Soon(t)
		if allocs := testing.AllocsPerRun(100_000, func() {
			if yes, err := l.Has(ctx, c[0], c[1]); yes || err != nil {
				t.Errorf("%v: %t, %v", c, yes, err)
			}
		}); allocs != 0 {
			t.Errorf("%v: %v allocations", c, allocs)
		}
	}
}
