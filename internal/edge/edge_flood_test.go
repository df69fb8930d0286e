package edge_test

import (
	"flag"
	"fmt"
	"strconv"
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
)

// floodTimes makes the floods of this package larger. docs/redis.md#memory has what came of
//
//	go test -run TestFilterFlood ./edge -v -timeout 0 -flood 25
//
// which binds 5,000,000 names.
var floodTimes = flag.Int("flood", 1, "how many times as many names the floods have")

// An edge's filter of bound keys and refs knows each name that was added, takes few others for
// one, and has a few bytes for each.
func TestFilterFlood(t *testing.T) {
	names, f := 200_000**floodTimes, edge.NewFilter()
	for i := range names {
		f.Add(fmt.Sprintf("k|%032d", i))
	}
	room, bytes := f.Size()
	for i := range names {
		if !f.Maybe(fmt.Sprintf("k|%032d", i)) {
			t.Fatalf("the filter has lost name %d", i)
		}
	}
	others := 0
	for i := range 100_000 {
		if f.Maybe(fmt.Sprintf("x|order-%d", i)) {
			others++
		}
	}
	t.Logf("%d names: room for %d, %d bytes, %.2f for each it has room for; of 100,000 others it takes %d for one of them", names, room, bytes, float64(bytes)/float64(room), others)
	if room < int64(names) || room > int64(8*names) || bytes > 5*room/2 {
		t.Errorf("%d names: room for %d, %d bytes", names, room, bytes)
	}
	if others > 500 {
		t.Errorf("of 100,000 names that were never added it takes %d for one that was", others)
	}
}

// With more names than it has room for the filter does not grow. The names themselves are
// only counted here: which bits are set changes no size.
func TestFilterIsBounded(t *testing.T) {
	f := edge.NewFilter()
	f.Count(5_000_000_000)
	if room, bytes := f.Size(); room != 16<<20 || bytes > 48<<20 {
		t.Errorf("room for %d, %d bytes", room, bytes)
	}
}

// Of 5,000,000 holds that were never settled an edge remembers as many as it may.
func TestHoldsFlood(t *testing.T) {
	if n := edge.OwnHolds(strconv.Itoa, 5_000_000); n != 10_000 {
		t.Errorf("%d holds", n)
	}
}
