package record

import (
	"strings"

	"github.com/stockgate/stockgate/internal/store/identity"
)

// Bindings calls yield for each field that a reservation with this guard and ref binds for
// good. By the ref alone it is found for any buyer.
func Bindings(guard, ref string, yield func(field string)) {
	if strings.HasPrefix(guard, identity.KeyField) {
		yield(guard)
	}
	if ref != "" {
		yield(FirstNameField + ref)
	}
}

// RefField is the binding of a ref to its buyer, a hash, as in lua/bindings.lua; empty: there
// is no ref.
func RefField(buyer, ref string) string {
	if ref == "" {
		return ""
	}
	return "b|" + buyer + "|" + ref
}

// The fields by which reservations are found by their ref alone, as in lua/bindings.lua: one
// for the first reservation and one for the others. MaxNamed is how many these name together;
// MoreNamed follows them when there are more.
const (
	FirstNameField  = "r|"
	OtherNamesField = "m|"
	MaxNamed        = 16
	MoreNamed       = "+"
)

// EndField is the binding field that finds, by its ref, what has ended and may still be asked
// for, as in lua/bindings.lua.
const EndField = "x|"

// IsEndField reports whether a binding field is one of those.
func IsEndField(field string) bool { return strings.HasPrefix(field, EndField) }

// ByName are the reservations with a ref, as its two binding fields list them.
type ByName struct {
	Ref string
	IDs []string
	// More says that there are others, for which the fields have no room.
	More bool
}

// NamedField returns the ref whose reservations a binding field names; false: it is another
// field.
func NamedField(field string) (ref string, ok bool) {
	if ref, ok = strings.CutPrefix(field, FirstNameField); ok {
		return ref, true
	}
	return strings.CutPrefix(field, OtherNamesField)
}

// Fields returns the names of the two fields.
func (n *ByName) Fields() (first, others string) {
	return FirstNameField + n.Ref, OtherNamesField + n.Ref
}

// Read parses the values of the two fields; empty: the field does not exist.
func (n *ByName) Read(first, others string) {
	n.IDs, n.More = strings.Fields(first), false
	for word := range strings.FieldsSeq(others) {
		if word == MoreNamed {
			n.More = true
		} else {
			n.IDs = append(n.IDs, word)
		}
	}
}

// Values returns what the two fields must be; empty: the field must not exist.
func (n *ByName) Values() (first, others string) {
	ids, more := n.IDs, n.More
	if len(ids) > MaxNamed {
		ids, more = ids[:MaxNamed], true
	}
	if len(ids) > 0 {
		first, ids = ids[0], ids[1:]
	}
	if more {
		ids = append(ids[:len(ids):len(ids)], MoreNamed)
	}
	return first, strings.Join(ids, " ")
}
