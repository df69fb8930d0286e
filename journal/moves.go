package journal

import (
	"github.com/stockgate/stockgate/record"
	"strconv"
	"strings"
)

// directions say what a kind of movement does to the units of its lines: 1 puts them back on
// sale (a negative number takes them away), -1 sells them, 0 neither. Any other kind may have
// any effect.
var directions = map[string]int64{
	"released": 1, "expired": 1, "returned": 1, "adjusted": 1, "loaded": 1,
	"confirmed": -1, "recreated": -1,
	"held": 0, "in_doubt": 0, "unbacked": 0, "extended": 0, "applied": 0, "open": 0, "paused": 0, "closed": 0, "rebuilt": 0,
}

// ChangesSale says that a movement changes a sale's file or status.
func (m *Moved) ChangesSale() bool {
	switch m.kind {
	case "applied", "open", "paused", "closed", "rebuilt":
		return true
	}
	return false
}

// Moves calls yield for every cell with the units that came back on sale or, where the number
// is negative, are no longer on sale. False: the effect of the movement is unknown.
func (m *Moved) Moves(yield func(cell string, units int64)) bool {
	direction, known := directions[m.kind]
	if !known {
		return false
	}
	if direction == 0 {
		return true
	}
	words := strings.Fields(m.lines)
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i+1], 10, 64)
		if err != nil {
			return false
		}
		yield(words[i], n*direction)
	}
	return len(words)%2 == 0
}

// The indexes of guard and ref among a record's fields.
const guardPlace, refPlace = 11, 14

// Binds calls yield for every binding that the reservation asks for, where the movement has
// them. Bindings that it did not get belong to other reservations, and are known already.
func (m *Moved) Binds(yield func(field string)) {
	guard, ref := "", ""
	i := 0
	for field := range strings.SplitSeq(m.record, "\t") {
		switch i {
		case guardPlace:
			guard = field
		case refPlace:
			ref = field
		}
		if i++; i > refPlace {
			break
		}
	}
	record.Bindings(guard, ref, yield)
}
