package reservation_test

import (
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/internal/test/model"
)

// A flood of attempts that were given up before Redis had answered leaves an hour of them:
// the tombstones go, also when no other name comes.
func TestTombstonesFlood(t *testing.T) {
	f := newFlood(t)
	memory := make([]int64, floodWaves)
	for i := range memory {
		f.setTime(noon + int64(i)*(hour+1000))
		f.expire()
		f.has("an hour after a wave", map[int]int{recordKey: 0, tombstoneKey: 0})
		f.wave(i, func(_ int, id string) []model.Operation {
			return []model.Operation{model.Release{ID: id, Word: "unsent", NotAfter: noon + int64(i)*(hour+1000) + 500, Cause: "no answer"}}
		})
		f.has("after a wave", map[int]int{recordKey: f.each, tombstoneKey: f.each, limitKey: 0, bindingKey: 0})
		memory[i] = f.memory()
	}
	f.bounded("tombstones", memory)
}

// A flood of holds that expire unpaid, each by another buyer with another key and another
// ref: the counters of unpaid holds go when they count nothing, the records and the refs after
// seven days. Keys and limits go with the holds.
func TestUnpaidHoldsFlood(t *testing.T) {
	f := newFlood(t)
	overdue, quiet, counters := make([]int64, floodWaves), make([]int64, floodWaves), int64(0)
	for i := range overdue {
		now := noon + int64(i)*(7*day+deadline-noon)
		f.setTime(now)
		if dropped := f.forget(); i > 0 && dropped != int64(f.each) {
			t.Fatalf("a week after wave %d %d records were over, want %d", i-1, dropped, f.each)
		}
		f.has("a week after a wave", map[int]int{recordKey: 0, bindingKey: 0, limitKey: 0, unpaidKey: 0})
		f.wave(i, func(n int, id string) []model.Operation {
			r := take(id, 1)
			r.Mode, r.Guard, r.Print, r.Ref = "backend", fmt.Sprintf("k|%032d", n), "print", fmt.Sprint("order-", n)
			r.Limits[0].Field = fmt.Sprintf("buyer:sale:units|-|%022d", n)
			r.Unpaid = model.Owed{Fields: []string{fmt.Sprintf("buyer|%022d", n)}, AtOnce: 1, Ended: 2, Within: hour}
			return []model.Operation{r}
		})
		f.setTime(now + deadline - noon)
		if ended := f.expire(); ended != int64(f.each) {
			t.Fatalf("of wave %d %d holds expired, want %d", i, ended, f.each)
		}
		f.has("after a wave", map[int]int{recordKey: f.each, bindingKey: f.each, limitKey: 0, unpaidKey: f.each})
		overdue[i], counters = f.memory(), f.memory(unpaidKey)
		f.setTime(now + deadline - noon + hour)
		if dropped := f.scan("lapse", hour); dropped != int64(f.each) {
			t.Fatalf("an hour after wave %d %d counters counted nothing, want %d", i, dropped, f.each)
		}
		f.has("an hour after a wave", map[int]int{recordKey: f.each, bindingKey: f.each, unpaidKey: 0})
		quiet[i] = f.memory()
	}
	f.bounded("holds that expired, with ref and counter", overdue)
	t.Logf("of that %d bytes for each counter", counters/int64(f.each))
	f.bounded("holds that expired an hour ago, with ref", quiet)
}
