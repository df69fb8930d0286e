package record

import (
	"github.com/stockgate/stockgate/identity"
	"strings"
)

// bindings calls yield for what a reservation with this guard and ref binds for good. By
// the ref alone it is found for any buyer.
func Bindings(guard, ref string, yield func(field string)) {
	if strings.HasPrefix(guard, identity.KeyField) {
		yield(guard)
	}
	if ref != "" {
		yield(FirstNameField + ref)
	}
}

// RefField is the binding of a ref to its buyer, a hash, as in lua/bindings.lua; empty:
// there is no ref.
func RefField(buyer, ref string) string {
	if ref == "" {
		return ""
	}
	return "b|" + buyer + "|" + ref
}

// The fields by which reservations are found by their ref alone, as in lua/bindings.lua:
// the first of them, and the others. mostNamed is how many these name together; behind
// them stands moreNamed, where there are more.
const (
	FirstNameField  = "r|"
	OtherNamesField = "m|"
	MaxNamed        = 16
	MoreNamed       = "+"
)

// ByName are the reservations that are found by a ref, as its two binding fields tell.
type ByName struct {
	Ref string
	IDs []string
	// More: there are others that the fields have no room for.
	More bool
}

// NamedField says of which ref a binding field names reservations; false: it is another
// field.
func NamedField(field string) (ref string, ok bool) {
	if ref, ok = strings.CutPrefix(field, FirstNameField); ok {
		return ref, true
	}
	return strings.CutPrefix(field, OtherNamesField)
}

// Fields are the names of the two fields.
func (n *ByName) Fields() (first, others string) {
	return FirstNameField + n.Ref, OtherNamesField + n.Ref
}

// Read takes what the fields are; empty: they are not there.
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

// Values are what the fields must be; empty: they must not be there.
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
