package challenge

import (
	"hash/maphash"
	"testing"
	"unsafe"
)

// A full set forgets one for each new one, first those whose tasks are no longer accepted
// any more. Nothing that is sent makes it grow.
func TestSpentSolutionsHaveABound(t *testing.T) {
	s := &spent{maphash.MakeSeed(), make([]spentSet, 1)}
	proof := func(n int) []byte { return []byte{byte(n), byte(n >> 8)} }
	remembered := func(minute int64, n int) (count int) {
		for i := range n {
			if s.has(proof(i), minute) {
				count++
			}
		}
		return count
	}
	for i := range spentWays {
		if !s.take(proof(i), 100, 100) || s.take(proof(i), 100, 100) {
			t.Fatalf("number %d is not spent once", i)
		}
	}
	for i := range 3 {
		if s.take(proof(i), 100, 101) {
			t.Errorf("number %d is spent again while its task is accepted", i)
		}
	}
	half := &spent{s.seed, make([]spentSet, 1)}
	for i := range spentWays {
		minute := int64(100 + i%2)
		half.take(proof(i), minute, 101)
	}
	for i := range spentWays {
		if !half.has(proof(i), int64(100+i%2)) {
			t.Errorf("number %d is forgotten, though there is room for all", i)
		}
	}
	for i := spentWays; i < 200; i++ {
		if !s.take(proof(i), 101, 101) || !s.has(proof(i), 101) {
			t.Fatalf("number %d finds no room", i)
		}
	}
	if n := remembered(100, 200) + remembered(101, 200); n != spentWays {
		t.Errorf("%d are remembered, there is room for %d", n, spentWays)
	}
	for i := range spentWays {
		if !s.take(proof(i), 103, 103) {
			t.Errorf("number %d of another minute is spent", i)
		}
	}
	if n := remembered(103, spentWays); n != spentWays {
		t.Errorf("only %d are remembered, though all others are too old", n)
	}
	if size := spentSets * unsafe.Sizeof(spentSet{}); size != 8<<20 {
		t.Errorf("all take %d bytes", size)
	}
}
