package rates_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
	"github.com/stockgate/stockgate/lua"
)

// floodTimes makes the floods of this package larger. docs/redis.md#memory has what came of
//
//	go test -run TestSharedRateFlood ./rates -v -timeout 0 -flood 50
//
// which send 5,000,000 names each.
var floodTimes = flag.Int("flood", 1, "how many times as many names the floods have")

// A flood of keys ends at the bound: Redis has that many buckets, the coarse buckets and a
// count, and uses no more memory than these need.
func TestSharedRateFlood(t *testing.T) {
	const coarse, bucket = 4096, 256 // bytes
	const window = 360_000_000       // ms: no bucket empties before the flood is over
	times := *floodTimes
	flood, bound := 100_000*times, 10_000*times
	c := redistest.Start(t).Client()
	call := func(from int) {
		t.Helper()
		var keys []string
		var args []any
		for j := from; j < from+100; j++ {
			keys = append(keys, fmt.Sprintf("stockgate:{rate}:%022d", j), fmt.Sprintf("stockgate:{rate}:%022d.%d", 0, j%coarse), "stockgate:{rate}:count")
			args = append(args, 1, 20, window, 20, bound)
		}
		if err := c.Eval(stocktest.Soon(t), lua.Redis().Of(lua.Rate).Source, keys, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	before := stocktest.UsedMemory(t, c)
	for i := 0; i < flood; i += 100 {
		call(i)
	}
	grown := stocktest.UsedMemory(t, c) - before
	most := bound + coarse + 1
	t.Logf("%d keys: Redis has grown by %d bytes, %d for each of %d buckets", flood, grown, grown/most, most)
	if n := c.DBSize(stocktest.Soon(t)).Val(); n != int64(most) {
		t.Errorf("%d keys in redis, want %d", n, most)
	}
	if grown > most*bucket {
		t.Errorf("Redis has grown by %d bytes, %d for each bucket", grown, grown/most)
	}
}
