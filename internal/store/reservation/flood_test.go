package reservation_test

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/draw"
	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// floodTimes makes the floods of this package larger. docs/redis.md#memory has what came of
//
//	DRAW=many go test -run 'Flood$' ./reservation -v -timeout 0 -flood 50
//
// which sends 5,000,000 names of each kind.
var floodTimes = flag.Int("flood", 1, "how many times as many names the floods have")

// Of the names of a flood come so many together, and it has so many waves.
const floodTogether, floodWaves = 50, 20

// flood is a sale on a redis-server whose clock the test steps, for more names than may stay.
type flood struct {
	t *testing.T
	*server
	keys []string // of the sale, in the order of lua/shard.lua
	each int      // names of a wave
}

// The keys that floods look at.
const (
	limitKey, recordKey, tombstoneKey, bindingKey, returnKey, unpaidKey = 2, 3, 7, 10, 11, 12
)

func newFlood(t *testing.T) *flood {
	f := &flood{t: t, server: servers(t)[0], each: draw.Times(1000, 5000) * *floodTimes}
	w := newTwin(t, []*server{f.server}, "flood")
	w.do(model.Apply{Starts: noon, Ends: noon + 1000*day, Deltas: []model.Delta{{Cell: "a", Units: int64(f.each)}}}, model.SetStatus{Status: "open"})
	f.keys = f.store.Shard().ShardKeys("flood")
	return f
}

// call runs operations that must all succeed.
func (f *flood) call(ops ...reservation.Operation) [][]any {
	f.t.Helper()
	_, replies, err := f.store.Call(f.t.Context(), "flood", ops...)
	if err != nil {
		f.t.Fatal(err)
	}
	for i, r := range replies {
		if r[0] != "ok" {
			f.t.Fatalf("operation %d of %d answers %v", i+1, len(replies), r)
		}
	}
	return replies
}

// wave sends the operations for each name of a wave, some names together.
func (f *flood) wave(number int, of func(n int, id string) []model.Operation) {
	f.t.Helper()
	f.t.Logf("wave %d of %d, each of %d names", number+1, floodWaves, f.each)
	for from := 0; from < f.each; from += floodTogether {
		var first, then []reservation.Operation // a call has one script
		for n := number*f.each + from; n < number*f.each+from+floodTogether; n++ {
			ops := of(n, fmt.Sprintf("019aa5f0-0000-7000-8000-%012d", n))
			first = append(first, wire(ops[0]))
			for _, op := range ops[1:] {
				then = append(then, wire(op))
			}
		}
		f.call(append(first, then...)...)
	}
}

// scan goes through all of something, page by page, and returns how much of it was dropped.
func (f *flood) scan(name string, args ...any) (dropped int64) {
	f.t.Helper()
	for cursor := "0"; ; {
		r := f.call(reservation.Operation{Name: name, Args: append([]any{cursor, 250}, args...)})[0]
		dropped += r[len(r)-1].(int64)
		if cursor = r[1].(string); cursor == "0" {
			return dropped
		}
	}
}

// forget drops the records that edges would drop now.
func (f *flood) forget() (dropped int64) {
	f.t.Helper()
	return f.scan("forget", hour, 7*day, 7*day)
}

// expire ends what is overdue.
func (f *flood) expire() (ended int64) {
	f.t.Helper()
	for {
		r := f.call(reservation.Operation{Name: "expire", Args: []any{250, 0}})[0]
		ended += r[1].(int64)
		if r[2] == int64(0) {
			return ended
		}
	}
}

// has fails the test unless the keys of the sale have so many entries.
func (f *flood) has(when string, want map[int]int) {
	f.t.Helper()
	for key, n := range want {
		count := f.client.HLen
		if key == tombstoneKey {
			count = f.client.ZCard
		}
		got, err := count(stocktest.Soon(f.t), f.keys[key]).Result()
		if err != nil || got != int64(n) {
			f.t.Fatalf("%s %s has %d entries, want %d; %v", when, f.keys[key], got, n, err)
		}
	}
}

// memory is what the keys of the sale take in Redis, in bytes; only some of them, if they are
// named. The journal has a bound of its own.
func (f *flood) memory(keys ...int) (bytes int64) {
	f.t.Helper()
	for i, key := range f.keys {
		named := len(keys) == 0
		for _, k := range keys {
			named = named || k == i
		}
		if !named || strings.HasSuffix(key, ":journal") {
			continue
		}
		n, err := f.client.MemoryUsage(stocktest.Soon(f.t), key, 0).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			f.t.Fatal(err)
		}
		bytes += n
	}
	return bytes
}

// bounded fails the test if the last wave took more memory than the first one, beyond the
// room that tables of Redis have.
func (f *flood) bounded(what string, memory []int64) {
	f.t.Helper()
	first, last := memory[0], memory[len(memory)-1]
	f.t.Logf("%d %s, %d of them at a time: %d bytes after the first wave, %d after the last, %d for each", len(memory)*f.each, what, f.each, first, last, last/int64(f.each))
	if last > first*3/2 {
		f.t.Errorf("Redis has grown: %d bytes after the first wave, %d after the last", first, last)
	}
}
