package reservation_test

import (
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/model"
)

// waiters makes the list of TestWaitlistFlood longer. docs/redis.md#memory has what came of -waiters 200000.
var waiters = flag.Int("waiters", 20_000, "how many people wait")

// What people who wait take in Redis, with one identity and with a second one: at most 200 bytes each, and 60 for a
// further identity. Afterwards nothing of them is left but the last number and how many there were.
func TestWaitlistFlood(t *testing.T) {
	var before float64
	for i, identity := range []string{"", " phone="} {
		f := newFlood(t)
		f.call(wire(take("all", int64(f.each))))
		f.each = *waiters
		person := func(n int) model.Enter {
			o := model.Enter{Cell: "a", Units: 1, Most: int64(f.each), Buyer: hashOf("buyer", n)}
			if identity != "" {
				o.Identities = identity + hashOf("phone", n)
			}
			return o
		}
		for from := 0; from < f.each; from += floodTogether {
			ops := wireAll(floodTogether, func(n int) model.Operation { return person(from + n) })
			f.call(ops...)
		}
		each := float64(f.memory(shard.WaitlistKey)) / float64(f.each)
		t.Logf("%d people with %d identities: %.1f bytes each", f.each, i+1, each)
		if most := map[int]float64{0: 200, 1: before + 60}[i]; each > most {
			t.Errorf("each of %d people takes %.1f bytes, want at most %.1f", f.each, each, most)
		}
		before = each
		for from := 0; from < f.each; from += floodTogether {
			f.call(wireAll(floodTogether, func(n int) model.Operation {
				return model.Withdraw{Number: int64(from + n + 1), Buyer: person(from + n).Buyer, Cause: "left"}
			})...)
		}
		f.has("after all have left", map[int]int{shard.WaitlistKey: 3}) // last, live and n|left
	}
}

// hashOf is as long as a hash of an identity.
func hashOf(kind string, n int) string {
	sum := sha256.Sum256(fmt.Append(nil, kind, n))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func wireAll(n int, of func(n int) model.Operation) []reservation.Operation {
	ops := make([]reservation.Operation, n)
	for i := range ops {
		ops[i] = wire(of(i))
	}
	return ops
}
