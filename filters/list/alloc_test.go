//go:build !race

package list_test

import (
	"context"
	"testing"

	"github.com/stockgate/stockgate/filters/list"
)

// large is how many entries a large list has, others how many lookups of other values
// there are.
const large, others = list.MaxEntries, 1_000_000

// TestLookupsDoNotAllocate looks at the paths that every attempt takes.
func TestLookupsDoNotAllocate(t *testing.T) {
	f := open(t, file(t, "alice\nphone:1555\n10.0.0.0/8\n2001:db8::/32\n10.1.0.0/16\n"), list.FileOptions{})
	m, _ := hashedOf(t, "alice", "phone:1555", "10.0.0.0/8", "2001:db8::/32")
	for _, c := range []struct {
		name        string
		list        *list.List
		kind, value string
		want        bool
	}{
		{"file, listed text", &f.List, list.Phone, "1555", true},
		{"file, other text", &f.List, list.Phone, "1666", false},
		{"file, listed address", &f.List, list.IP, "10.9.9.9", true},
		{"file, other address", &f.List, list.IP, "11.9.9.9", false},
		{"file, listed IPv6", &f.List, list.IP, "2001:db8::1", true},
		{"file, other IPv6", &f.List, list.IP, "2002:db8::1", false},
		{"mirror, other text", &m.List, list.Phone, "1666", false},
		{"mirror, other address", &m.List, list.IP, "11.9.9.9", false},
		{"mirror, other IPv6", &m.List, list.IP, "2002:db8::1", false},
	} {
		allocs := testing.AllocsPerRun(1000, func() {
			if yes, err := c.list.Has(context.Background(), c.kind, c.value); yes != c.want || err != nil {
				t.Fatalf("%s: %v, %v", c.name, yes, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", c.name, allocs)
		}
	}
}
