package reservation_test

import (
	"runtime"
	"testing"

	"github.com/stockgate/stockgate/internal/test/model"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// The embedded server makes a table's array as long as its greatest index. A script that had
// a number of milliseconds or of units as an index would fill 16 bytes for each of them.
func TestScriptsMakeNoLongArrays(t *testing.T) {
	const many, most = 60_000_000, 64 << 20 // ms and units; bytes
	store := stocktest.OpenStore(t, stocktest.Options(redistest.Embedded(t)))
	stocktest.Load(t, store, stocktest.OpenSale("s", many))
	r := take("r", 1)
	r.HoldFor, r.KeyTTL = 3_000_000, many
	r.Guard, r.Print = "k|key", "print"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, op := range []model.Operation{r, model.Extend{ID: "r", HoldFor: 5_000_000, Longest: many}, model.Confirm{ID: "r", Word: "shop"}} {
		if _, replies, err := store.Call(stocktest.Soon(t), "s", wire(op)); err != nil || replies[0][0] != "ok" {
			t.Fatalf("%+v answers %v, error %v", op, replies, err)
		}
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most {
		t.Errorf("a reserve, an extension and a confirm have allocated %d bytes, want %d at most", allocated, most)
	}
}
