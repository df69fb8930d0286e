package reservation_test

import (
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/internal/redistest"
	"github.com/stockgate/stockgate/lua"
)

// A flood of keys ends at the bound: Redis has that many buckets, the coarse ones and a
// count.
func TestSharedRateFlood(t *testing.T) {
	const flood, bound, coarse = 200_000, 20_000, 4096
	b := redistest.Start(t)
	for i := 0; i < flood; i += 100 {
		var keys []string
		var args []any
		for j := i; j < i+100; j++ {
			keys = append(keys, fmt.Sprintf("stockgate:{rate}:%022d", j), fmt.Sprintf("stockgate:{rate}:%022d.%d", 0, j%coarse), "stockgate:{rate}:count")
			args = append(args, 1, 20, 3_600_000, 20, bound)
		}
		if err := b.Client().Eval(soon(t), lua.Redis.Rate.Source, keys, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.Client().DBSize(soon(t)).Val(); n != bound+coarse+1 {
		t.Errorf("%d keys in redis, want %d", n, bound+coarse+1)
	}
}
