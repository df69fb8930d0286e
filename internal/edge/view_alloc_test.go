//go:build !race

package edge_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// Who is refused from memory costs no allocation, nor does the look at the filter.
func TestRememberedDoesNotAllocate(t *testing.T) {
	e := following(t, stocktest.Options(redistest.Embedded(t)), 1)
	l, _ := e.Catalogue().Sale("s")
	seq, _ := e.Followed("s")
	lines := []sale.Line{{SKU: "a", Quantity: 1}, {SKU: "b", Quantity: 1, Region: "north"}}
	for i := range lines {
		e.Told(l, &lines[i], seq, 0, &sale.Refusal{Reason: sale.AllHeld, SKU: lines[i].SKU})
	}
	for name, lines := range map[string][]sale.Line{"one": lines[:1], "region": lines[1:], "both": lines} {
		if n := testing.AllocsPerRun(100_000, func() {
			if no, _ := e.Remembered(l, nil, lines); no == nil {
				t.Error("it is not refused")
			}
			e.MayBeBound("s", "k|0123456789abcdef")
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkRemembered(b *testing.B) {
	e := following(b, stocktest.Options(redistest.Embedded(b)), 1)
	l, _ := e.Catalogue().Sale("s")
	seq, _ := e.Followed("s")
	lines := stocktest.UnitsOfA(1)
	e.Told(l, &lines[0], seq, 0, sale.Refuse(sale.SoldOut))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if no, _ := e.Remembered(l, nil, lines); no == nil {
				b.Error("it is not refused")
				return
			}
		}
	})
}

// An attempt with a key that was there before a check was sent costs no allocation.
func TestSurelyNewDoesNotAllocate(t *testing.T) {
	e := following(t, stocktest.Options(redistest.Embedded(t)), 1)
	l, _ := e.Catalogue().Sale("s")
	a, came := repeating("r1", "key 1", ""), &edge.Arrival{At: time.Now()}
	if !isNew(t, e, a) {
		t.Fatal("it is not new")
	}
	if n := testing.AllocsPerRun(100_000, func() {
		if isNew, _, err := e.SurelyNewAt(l, a, came); !isNew || err != nil {
			t.Errorf("new %t, %v", isNew, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
