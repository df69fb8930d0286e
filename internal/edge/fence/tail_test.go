package fence

import (
	"strings"
	"testing"
)

// A server that gets what it lacks tells it again: the edge keeps what comes after it, so that the
// next server gets that too. Another history replaces it.
func TestTailIsReadAgain(t *testing.T) {
	bytes := newRoom(maxTailBytes)
	var of tail
	for i := int64(1); i <= 10; i++ {
		of.add(bytes, 1, 2*i-1, 2*i, "1", "entry")
	}
	of.add(bytes, 1, 7, 8, "1", "entry")
	of.addEarlier(bytes, 1, 3, 4, "1", "entry")
	if n, through := of.last(1), of.through(1, 0); n != 20 || through != 20 || len(of.entries) != 10 || bytes.held.Load() != 50 {
		t.Errorf("after what is known the newest is %d, all are known to %d, %d entries of %d bytes", n, through, len(of.entries), bytes.held.Load())
	}
	of.add(bytes, 1, 7, 8, "2", "entry")
	if n := of.last(1); n != 8 {
		t.Errorf("after another entry the newest is %d, want 8", n)
	}
	of.add(bytes, 1, 11, 11, "2", "entry")
	of.addEarlier(bytes, 1, 0, 0, "2", "entry")
	for after, want := range map[int64]int64{0: 8, 2: 8, 5: 8, 8: 8, 9: 9, 10: 11, 11: 11, 12: 12} {
		if got := of.through(1, after); got != want {
			t.Errorf("all after %d are known to %d, want %d", after, got, want)
		}
	}
	var empty tail
	empty.addEarlier(bytes, 1, 3, 4, "1", "entry")
	if got := empty.through(1, 2); got != 4 {
		t.Errorf("an empty tail begins with what is looked up: %d", got)
	}
}

// Numbers of another epoch are another journal: what is known of an earlier one is dropped, and what
// comes late of it is not taken.
func TestTailIsOfOneEpoch(t *testing.T) {
	bytes := newRoom(maxTailBytes)
	var of tail
	of.add(bytes, 1, 900, 900, "1", "entry")
	of.addEarlier(bytes, 2, 40, 43, "2", "other")
	of.add(bytes, 1, 901, 901, "1", "entry")
	if pieces := of.after(2, 0); of.last(2) != 43 || of.through(2, 39) != 43 || len(pieces[0]) != 3 || bytes.held.Load() != 5 {
		t.Errorf("of the later epoch the newest is %d, all are known to %d, %v; %d bytes", of.last(2), of.through(2, 39), pieces, bytes.held.Load())
	}
	if pieces := of.after(1, 0); of.last(1) != 0 || of.through(1, 7) != 7 || pieces[0] != nil {
		t.Errorf("of the earlier epoch the newest is %d, all are known to %d, %v", of.last(1), of.through(1, 7), pieces)
	}
}

// The tail keeps the newest entries within its bytes, replaces those of another history, and
// gives them in pieces.
func TestTailIsBounded(t *testing.T) {
	bytes := newRoom(maxTailBytes)
	var of tail
	text := strings.Repeat("x", 1<<20)
	for i := int64(1); i <= 100; i++ {
		of.add(bytes, 1, i, i, "1", text)
	}
	if n := bytes.held.Load(); n > maxTailBytes || n < maxTailBytes-2<<20 {
		t.Errorf("%d bytes are kept, the bound is %d", n, maxTailBytes)
	}
	of.add(bytes, 1, 99, 99, "1", "other")
	if n := of.last(1); n != 99 {
		t.Errorf("the newest entry is %d, want 99", n)
	}
	pieces := of.after(1, 96)
	if len(pieces) != 3 || len(pieces[0]) != 3 || pieces[2][0] != "99" || pieces[2][2] != "other" {
		t.Errorf("the entries after 96 come in %d pieces", len(pieces))
	}
	if pieces := of.after(1, 99); len(pieces) != 1 || pieces[0] != nil {
		t.Errorf("after the newest entry there is %v", pieces)
	}
	of.cutAfter(90)
	if of.last(1) != 90 {
		t.Errorf("after the cut the newest entry is %d, want 90", of.last(1))
	}
}
