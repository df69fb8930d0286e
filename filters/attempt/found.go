package attempt

import (
	"sync"
	"unsafe"
)

// state reports whether an input was found.
type state uint8

const (
	absent  state = iota
	null          // present as JSON null
	present       // present, perhaps empty
)

// found is what was read of one input.
type found struct {
	state state
	text  string
}

// scratch gathers one request's inputs. It is reused: its strings share no buffer
// unless they are borrowed.
type scratch struct {
	// borrow: strings may share the body's memory.
	borrow bool
	// got has the values of sources, by slot.
	got []found
	// rows has the fields of the lines array, rowLen for each element.
	rows []found
	// keys has the index or key of each row of a form's array.
	keys []string
	// listed: there is a lines array, perhaps an empty one.
	listed bool
	// nulled: in place of the lines array, or of what it is in, there is null.
	nulled bool
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func takeScratch(slots int) *scratch {
	sc := scratches.Get().(*scratch)
	if cap(sc.got) < slots {
		sc.got = make([]found, slots)
	}
	sc.got = sc.got[:slots]
	return sc
}

// text is a part of the body as a string.
func (sc *scratch) text(b []byte) string {
	if sc.borrow && len(b) > 0 {
		return unsafe.String(&b[0], len(b))
	}
	return string(b)
}

// giveBack clears everything, so that the next request sees nothing of this one and no
// memory is retained.
func (sc *scratch) giveBack() {
	clear(sc.got)
	clear(sc.rows)
	clear(sc.keys)
	sc.rows, sc.keys, sc.listed, sc.nulled = sc.rows[:0], sc.keys[:0], false, false
	scratches.Put(sc)
}
