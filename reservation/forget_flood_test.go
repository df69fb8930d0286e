package reservation_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/model"
	"github.com/stockgate/stockgate/internal/stocktest"
	"github.com/stockgate/stockgate/reservation"
)

// floodTimes makes the flood larger. docs/memory.md has what came of
//
//	go test -run TestRefusedOrdersFlood ./reservation -v -timeout 0 -flood 50
var floodTimes = flag.Int("flood", 1, "how many times as many names the flood has")

// A flood of orders that the shop refuses, each by another buyer with another key and another
// ref, leaves in Redis what an hour of it has made, and the journal: everything else goes
// with what is over, as fast as edges forget.
func TestRefusedOrdersFlood(t *testing.T) {
	const waves, together = 20, 50
	each := 5000 * *floodTimes
	for _, s := range servers(t)[:1] {
		w := newTwin(t, []*server{s}, "flood")
		w.do(model.Apply{Starts: noon, Ends: noon + 1000*day, Deltas: []model.Delta{{Cell: "a", Units: 1000}}}, model.SetStatus{Status: "open"})
		keys := s.store.Shard().ShardKeys("flood")
		call := func(ops ...reservation.Operation) [][]any {
			t.Helper()
			_, replies, err := s.store.Call(stocktest.Soon(t), "flood", ops...)
			if err != nil {
				t.Fatal(err)
			}
			return replies
		}
		number := func(key string) int64 {
			t.Helper()
			n, err := s.client.HLen(stocktest.Soon(t), key).Result()
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		forget := func() (dropped int64) {
			for cursor := "0"; ; {
				f := call(reservation.Operation{Name: "forget", Args: []any{cursor, 250, hour, 7 * day, 7 * day}})[0]
				dropped += f[3].(int64)
				if cursor = f[1].(string); cursor == "0" {
					return dropped
				}
			}
		}
		memory := make([]int64, waves)
		for i := range waves {
			now := noon + int64(i)*(hour+deadline-noon)
			s.setTime(now)
			for j := 0; j < each; j += together {
				reserve, release := make([]reservation.Operation, together), make([]reservation.Operation, together)
				for k := range together {
					n := i*each + j + k
					id := fmt.Sprintf("019aa5f0-0000-7000-8000-%012d", n)
					r := take(id, 1)
					r.Guard, r.Print, r.Ref = fmt.Sprintf("k|%032d", n), "print", fmt.Sprint("order-", n)
					r.Limits[0].Field = fmt.Sprintf("buyer:sale:units|-|%022d", n)
					reserve[k], release[k] = wire(r), wire(model.Release{ID: id, Word: "shop", Cause: "status_409"})
				}
				for k, reply := range call(append(reserve, release...)...) {
					if reply[0] != "ok" {
						t.Fatalf("operation %d of wave %d answers %v", k, i, reply)
					}
				}
			}
			if dropped := forget(); i > 0 && dropped != int64(each) {
				t.Fatalf("after wave %d %d records were over, want %d", i, dropped, each)
			}
			if n := number(keys[3]); n != int64(each) {
				t.Fatalf("after wave %d Redis has %d records, want %d", i, n, each)
			}
			for name, key := range map[string]string{"limits": keys[2], "bindings": keys[10], "returns": keys[11]} {
				if n := number(key); n != 0 {
					t.Fatalf("after wave %d Redis has %d %s of refused orders", i, n, name)
				}
			}
			for _, key := range keys {
				if strings.HasSuffix(key, ":journal") {
					continue // it has a bound of its own
				}
				n, err := s.client.MemoryUsage(stocktest.Soon(t), key, 0).Result()
				if err != nil && err.Error() != "redis: nil" {
					t.Fatal(err)
				}
				memory[i] += n
			}
		}
		t.Logf("%d bytes after %d refused orders, %d after %d: %d a record", memory[0], each, memory[waves-1], waves*each, memory[0]/int64(each))
		if memory[waves-1] > 2*memory[0] {
			t.Errorf("Redis has grown: %d bytes after the first wave, %d after the last", memory[0], memory[waves-1])
		}
		s.setTime(noon + 100*day)
		if dropped := forget(); dropped != int64(each) || number(keys[3]) != 0 {
			t.Errorf("in the end %d records were over, and %d are left", dropped, number(keys[3]))
		}
	}
}
