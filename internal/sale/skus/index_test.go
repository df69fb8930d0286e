package skus_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stockgate/stockgate/internal/sale/skus"
)

// Every SKU is found at all its numbers and in their order, whatever stands beside it; one
// that was not added is not found.
func TestIndex(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 1000, 70_000} {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprint("sku", i%(1+n*9/10))) // a tenth of them twice
		}
		x := skus.New(len(list))
		for i, sku := range list {
			x.Add(sku, uint32(i))
		}
		find := func(sku string) (at []int) {
			for c := x.Find(sku); ; {
				i, ok := x.Next(&c)
				if !ok {
					return at
				}
				if list[i] == sku {
					at = append(at, int(i))
				}
			}
		}
		want := make(map[string][]int)
		for i, sku := range list {
			want[sku] = append(want[sku], i)
		}
		for sku, at := range want {
			if got := find(sku); !slices.Equal(got, at) {
				t.Fatalf("of %d: %s is at %v, found %v", n, sku, at, got)
			}
		}
		// what is not there may be taken for another at first, but hardly ever
		mistaken := 0
		for i := range 1000 {
			c := x.Find(fmt.Sprint("other", i))
			if _, ok := x.Next(&c); ok {
				mistaken++
			}
		}
		if mistaken > 10 {
			t.Errorf("of %d: %d of 1000 that are not there are looked for in the list", n, mistaken)
		}
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	x := skus.New(1)
	x.Add("a", 7)
	if n := testing.AllocsPerRun(100, func() {
		c := x.Find("a")
		if i, ok := x.Next(&c); !ok || i != 7 {
			t.Fatal(i, ok)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
