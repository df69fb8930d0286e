package reservation_test

import (
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/internal/test/model"
)

// A flood of orders that the shop refuses, each by another buyer with another key and another
// ref, leaves in Redis what an hour of it has made, and the journal: everything else goes
// with what is over, as fast as edges forget.
func TestRefusedOrdersFlood(t *testing.T) {
	f := newFlood(t)
	memory := make([]int64, floodWaves)
	for i := range memory {
		f.setTime(noon + int64(i)*(hour+deadline-noon))
		f.wave(i, func(n int, id string) []model.Operation {
			r := take(id, 1)
			r.Guard, r.Print, r.Ref = fmt.Sprintf("k|%032d", n), "print", fmt.Sprint("order-", n)
			r.Limits[0].Field = fmt.Sprintf("buyer:sale:units|-|%022d", n)
			return []model.Operation{r, model.Release{ID: id, Word: "shop", Cause: "status_409"}}
		})
		if dropped := f.forget(); i > 0 && dropped != int64(f.each) {
			t.Fatalf("after wave %d %d records were over, want %d", i, dropped, f.each)
		}
		f.has("after a wave", map[int]int{recordKey: f.each, limitKey: 0, bindingKey: 0, returnKey: 0})
		memory[i] = f.memory()
	}
	f.bounded("orders that the shop refused", memory)
	f.setTime(noon + 100*day)
	if dropped := f.forget(); dropped != int64(f.each) {
		t.Errorf("in the end %d records were over", dropped)
	}
	f.has("in the end", map[int]int{recordKey: 0})
}
