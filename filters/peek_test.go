package filters_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters"
)

// TestPeekCountsNothing asks before each attempt, twice, and hears what the attempt will.
func TestPeekCountsNothing(t *testing.T) {
	table := filters.NewRateTable(filters.Rate{Events: 2, Window: time.Second, Burst: 3})
	now := time.Now()
	for i := range 20 {
		first, again := table.Peek(now, "k"), table.Peek(now, "k")
		if got := table.Take(now, "k"); first != got || again != got {
			t.Errorf("%d: the attempt waits %v, foreseen were %v and %v", i, got, first, again)
		}
		now = now.Add(200 * time.Millisecond)
	}
	if wait := table.Peek(now, "stranger"); wait != 0 {
		t.Errorf("a new key waits %v", wait)
	}
}

func TestEnteredAndFull(t *testing.T) {
	var single filters.Single
	if single.Entered("a") {
		t.Error("no attempt has entered")
	}
	single.Enter("a")
	if !single.Entered("a") || single.Entered("b") {
		t.Error("a has entered, and not b")
	}
	single.Leave("a")
	if single.Entered("a") {
		t.Error("a has left")
	}
	slots := filters.NewSlots(1)
	if slots.Full() {
		t.Error("there is a slot")
	}
	slots.Take()
	if !slots.Full() {
		t.Error("there is none")
	}
	slots.Give()
	if slots.Full() {
		t.Error("there is one again")
	}
}
