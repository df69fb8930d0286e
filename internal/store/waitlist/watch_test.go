package waitlist_test

import (
	"strconv"
	"testing"

	"github.com/stockgate/stockgate/internal/store/waitlist"
)

// heard reports whether a client has news, and takes it.
func heard(w *waitlist.PlaceWatch) bool {
	select {
	case <-w.News:
		return true
	default:
		return false
	}
}

// News wakes those whom it concerns, and no other.
func TestNewsWakesWhomItConcerns(t *testing.T) {
	var all waitlist.Watches
	ben, again, cid, other := all.Open("s", "ben"), all.Open("s", "ben"), all.Open("s", "cid"), all.Open("other", "ben")
	ben.For("a")
	again.For("a")
	cid.For("b")
	for name, c := range map[string]struct {
		wake func()
		want [4]bool
	}{
		"a person":       {func() { all.WakePerson("s", "ben") }, [4]bool{true, true, false, false}},
		"a stranger":     {func() { all.WakePerson("s", "dan") }, [4]bool{}},
		"a cell":         {func() { all.WakeCell("s", "b") }, [4]bool{false, false, true, false}},
		"a sale":         {func() { all.WakeCell("s", "") }, [4]bool{true, true, true, false}},
		"twice at once":  {func() { all.WakePerson("s", "cid"); all.WakePerson("s", "cid") }, [4]bool{false, false, true, false}},
		"a sale unknown": {func() { all.WakeCell("x", "") }, [4]bool{}},
	} {
		c.wake()
		if got := [4]bool{heard(ben), heard(again), heard(cid), heard(other)}; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if heard(cid) {
			t.Errorf("%s is told twice", name)
		}
	}
	again.Close()
	all.WakePerson("s", "ben")
	if !heard(ben) || heard(again) {
		t.Error("the wrong one was closed")
	}
	if all.End(); !ben.IsOver() || !heard(ben) || !heard(cid) || !heard(other) {
		t.Error("the end is not told")
	}
	if all.Open("s", "ben") != nil {
		t.Error("it opens after the end")
	}
}

// A place whose cell is not known hears of all cells.
func TestNewsOfAnUnknownCell(t *testing.T) {
	var all waitlist.Watches
	ben := all.Open("s", "ben")
	if all.WakeCell("s", "a"); !heard(ben) {
		t.Error("it hears nothing")
	}
}

// Clients of one person, and of all, are bounded; who leaves makes room.
func TestWatchesAreBounded(t *testing.T) {
	var all waitlist.Watches
	last := all.Open("s", "ben")
	for range waitlist.MostOfPerson - 1 {
		last = all.Open("s", "ben")
	}
	if last == nil || all.Open("s", "ben") != nil {
		t.Error("one person has not as many as may be")
	}
	for i := range waitlist.MostWatched - waitlist.MostOfPerson {
		if all.Open("s", strconv.Itoa(i)) == nil {
			t.Fatalf("only %d are open", i)
		}
	}
	if all.Size() != waitlist.MostWatched || all.Open("s", "cid") != nil {
		t.Error("there are more than may be")
	}
	last.Close()
	if all.Open("s", "cid") == nil || all.Open("s", "dan") != nil {
		t.Error("one who leaves does not make room for one")
	}
}
