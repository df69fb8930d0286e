package edge_test

import (
	"strconv"
	"testing"

	"github.com/stockgate/stockgate/edge"
)

// An edge's filter of bound keys and refs takes 2.2 bytes a name, and no more than for 16 million
// of them, however many were bound.
func TestFilterFlood(t *testing.T) {
	for bindings, most := range map[int64]int64{5_000_000: 48 << 20, 5_000_000_000: 48 << 20} {
		room, bytes, wants := edge.FilterOf(bindings)
		t.Logf("%d names: room for %d, %d bytes", bindings, room, bytes)
		if bytes > most || room > 16<<20 || wants && bindings > room {
			t.Errorf("%d names: room for %d, %d bytes, wants more: %v", bindings, room, bytes, wants)
		}
	}
}

// Of 5,000,000 holds that were never settled an edge remembers as many as it may.
func TestHoldsFlood(t *testing.T) {
	if n := edge.OwnHolds(strconv.Itoa, 5_000_000); n != 10_000 {
		t.Errorf("%d holds", n)
	}
}
