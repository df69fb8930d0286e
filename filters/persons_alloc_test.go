//go:build !race

package filters_test

import (
	"testing"

	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/list"
)

// TestPersonsDoNotAllocate looks at what every attempt takes, and at refusals.
func TestPersonsDoNotAllocate(t *testing.T) {
	lists := []*list.List{listOf(t, "buyer:bob\nphone:1555\n192.0.2.0/24\n2001:db8::/32\ncarol\n")}
	items := filters.NewItems(func(yield func(string) bool) { yield("20002001") })
	for name, p := range map[string]filters.Person{
		"other":      {IP: "198.51.100.1", Buyer: "ann", Identities: map[string]string{"phone": "1666"}},
		"other IPv6": {IP: "2001:db9::1", Buyer: "ann"},
		"listed":     {IP: "198.51.100.1", Buyer: "ann", Identities: map[string]string{"phone": "1555"}},
	} {
		if n := testing.AllocsPerRun(1000, func() {
			if _, err := filters.Denied(t.Context(), lists, &p); err != nil {
				t.Error(err)
			}
			if _, err := filters.Admitted(t.Context(), lists, &p); err != nil {
				t.Error(err)
			}
			items.Listed("20002002")
			items.Listed("99999999999999999999")
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
