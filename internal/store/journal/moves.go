package journal

import (
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/store/record"
)

// ChangesSale reports whether a movement changes a sale's file or status.
func (m *Moved) ChangesSale() bool { return effects[m.kind].Sale }

// Moves calls yield for every cell with the units that came back on sale or, where the number
// is negative, are no longer on sale. False: the effect of the movement is unknown.
func (m *Moved) Moves(yield func(cell string, units int64)) bool {
	effect, known := effects[m.kind]
	if !known || effect.Opaque {
		return false
	}
	if effect.onSale == 0 {
		return true
	}
	return m.eachLine(effect.onSale, yield)
}

// Leaves calls yield for every cell with the units that can still be sold since or, where the number is negative, can
// not any more: they are sold, or have left the stock. False: the effect of the movement is unknown.
func (m *Moved) Leaves(yield func(cell string, units int64)) bool {
	effect, known := effects[m.kind]
	if !known || effect.Opaque {
		return false
	}
	sign := int64(0)
	switch sold := m.was == string(record.Confirmed); {
	case effect.Stock || effect.Returned:
		sign = 1
	case effect.Enters == record.Confirmed && !sold:
		sign = -1
	case effect.Enters != "" && effect.Enters != record.Confirmed && sold:
		sign = 1
	default:
		return true
	}
	return m.eachLine(sign, yield)
}

// eachLine calls yield for every cell with its units, times sign. False: they cannot be read.
func (m *Moved) eachLine(sign int64, yield func(cell string, units int64)) bool {
	words := strings.Fields(m.lines)
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i+1], 10, 64)
		if err != nil {
			return false
		}
		yield(words[i], n*sign)
	}
	return len(words)%2 == 0
}

// Binds calls yield for every binding that the reservation asks for, where the movement has
// them. Bindings that it did not get belong to other reservations, and are known already.
func (m *Moved) Binds(yield func(field string)) {
	guard, ref := "", ""
	i := record.FieldState
	for field := range strings.SplitSeq(m.record, "\t") {
		switch i {
		case record.FieldGuard:
			guard = field
		case record.FieldRef:
			ref = field
		}
		if i++; i > record.FieldRef {
			break
		}
	}
	record.Bindings(guard, ref, yield)
}
