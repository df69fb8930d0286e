package reservation

import (
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// entry is one entry of a journal.
type entry struct {
	seq    int64
	fields map[string]any
}

// entryOf reads an entry's id, which is seq-0. False: it is none of ours.
func entryOf(m redis.XMessage) (entry, bool) {
	text, ok := strings.CutSuffix(m.ID, "-0")
	seq, err := strconv.ParseInt(text, 10, 64)
	return entry{seq, m.Values}, ok && err == nil
}

func (e entry) field(name string) string {
	text, _ := e.fields[name].(string)
	return text
}

// print tells an entry from another that has its seq in another life of the journal.
func (e entry) print() string {
	return strings.Join([]string{e.field("time"), e.field("kind"), e.field("id"), e.field("lines")}, "\t")
}

// directions say what a kind of entry does to the units of its lines: 1 puts them back on
// sale (a negative number takes them away), -1 sells them, 0 neither. Any other kind may
// do anything.
var directions = map[string]int64{
	"released": 1, "expired": 1, "returned": 1, "adjusted": 1, "loaded": 1,
	"confirmed": -1, "recreated": -1,
	"held": 0, "in_doubt": 0, "unbacked": 0, "extended": 0, "applied": 0, "open": 0, "paused": 0, "closed": 0, "rebuilt": 0,
}

// changesSale says that a sale's file or status is another one now.
func (e entry) changesSale() bool {
	switch e.field("kind") {
	case "applied", "open", "paused", "closed", "rebuilt":
		return true
	}
	return false
}

// moves calls yield for every cell of which units came back on sale or, where the number
// is negative, went for good. False: nobody knows what the entry has done.
func (e entry) moves(yield func(cell string, units int64)) bool {
	direction, known := directions[e.field("kind")]
	if e.field("v") != "1" || !known {
		return false
	}
	if direction == 0 {
		return true
	}
	words := strings.Fields(e.field("lines"))
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i+1], 10, 64)
		if err != nil {
			return false
		}
		yield(words[i], n*direction)
	}
	return len(words)%2 == 0
}

// The places of a record's guard and ref among its fields.
const guardPlace, refPlace = 11, 14

// binds calls yield for every binding that the reservation asks for, where the entry
// tells it. Those that it did not get belong to others, and are known already.
func (e entry) binds(yield func(field string)) {
	guard, ref := "", ""
	i := 0
	for field := range strings.SplitSeq(e.field("record"), "\t") {
		switch i {
		case guardPlace:
			guard = field
		case refPlace:
			ref = field
		}
		i++
	}
	bindings(guard, ref, yield)
}

// bindings calls yield for what a reservation with this guard and ref binds for good.
func bindings(guard, ref string, yield func(field string)) {
	if strings.HasPrefix(guard, keyField) {
		yield(guard)
	}
	if ref != "" {
		yield(refField + ref)
	}
}

// What the fields of idempotency keys and of refs begin with. Those of attempts that
// are under way are not looked up before an attempt reserves.
const (
	keyField = "k|"
	refField = "r|"
)
