package reservation

import (
	"context"
	"hash/maphash"
	"strings"
)

// The fields by which reservations are found by their ref alone, as in lua/bindings.lua:
// the first of them, and the others. mostNamed is how many these name together; behind
// them stands moreNamed, where there are more.
const (
	refField    = "r|"
	othersField = "m|"
	mostNamed   = 16
	moreNamed   = "+"
)

// Named says that reservations in this state are found by their ref.
func (s State) Named() bool {
	return s == Held || s == InDoubt || s == Confirmed || s == Unbacked
}

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
	if ref, ok = strings.CutPrefix(field, refField); ok {
		return ref, true
	}
	return strings.CutPrefix(field, othersField)
}

// Fields are the names of the two fields.
func (n *ByName) Fields() (first, others string) { return refField + n.Ref, othersField + n.Ref }

// Read takes what the fields are; empty: they are not there.
func (n *ByName) Read(first, others string) {
	n.IDs, n.More = strings.Fields(first), false
	for word := range strings.FieldsSeq(others) {
		if word == moreNamed {
			n.More = true
		} else {
			n.IDs = append(n.IDs, word)
		}
	}
}

// Values are what the fields must be; empty: they must not be there.
func (n *ByName) Values() (first, others string) {
	ids, more := n.IDs, n.More
	if len(ids) > mostNamed {
		ids, more = ids[:mostNamed], true
	}
	if len(ids) > 0 {
		first, ids = ids[0], ids[1:]
	}
	if more {
		ids = append(ids[:len(ids):len(ids)], moreNamed)
	}
	return first, strings.Join(ids, " ")
}

// Found are the reservations that go by a name.
type Found struct {
	Records []Record
	// More: there are others, which are found by their ids alone.
	More bool
}

// Named finds reservations of a sale by their ids or the shop's refs; a name that Redis
// does not know is not in the answer. By an id there is one; by a ref one of each buyer who
// has used it, unless it was released or has expired.
func (s *Store) Named(ctx context.Context, sale string, names []string) (map[string]*Found, error) {
	out := make(map[string]*Found, len(names))
	records, err := s.records(ctx, sale, names)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		out[r.ID] = &Found{Records: []Record{r}}
	}
	var refs, fields []string
	for _, name := range names {
		if out[name] == nil {
			first, others := (&ByName{Ref: name}).Fields()
			refs, fields = append(refs, name), append(fields, first, others)
		}
	}
	if len(fields) == 0 {
		return out, nil
	}
	bound, err := s.redis.HMGet(ctx, s.shardKeys(sale)[bindingsKey], fields...).Result()
	if err != nil {
		return nil, explain(err)
	}
	var ids []string
	for i, ref := range refs {
		first, _ := bound[2*i].(string)
		others, _ := bound[2*i+1].(string)
		var n ByName
		n.Read(first, others)
		ids = append(ids, n.IDs...)
		if n.More {
			out[ref] = &Found{More: true}
		}
	}
	if records, err = s.records(ctx, sale, ids); err != nil {
		return nil, err
	}
	wanted := make(map[string]bool, len(refs))
	for _, ref := range refs {
		wanted[ref] = true
	}
	for _, r := range records {
		if !wanted[r.Ref] || !r.State.Named() {
			continue // its ref was given up since
		}
		f := out[r.Ref]
		if f == nil {
			f = new(Found)
			out[r.Ref] = f
		}
		f.Records = append(f.Records, r)
	}
	return out, nil
}

// addRef makes a reservation one that is found by its ref.
func (m *Image) addRef(binds []string, id, ref string) []string {
	hash := maphash.String(m.seed, refField+ref)
	if _, ok := m.bound[hash]; !ok {
		m.bound[hash] = claim{}
		return append(binds, refField+ref)
	}
	switch others := m.others[ref]; {
	case others == "":
		m.others[ref] = id
	case strings.Count(others, " ") < mostNamed-2:
		m.others[ref] = others + " " + id
	case !strings.HasSuffix(others, moreNamed):
		m.others[ref] = others + " " + moreNamed
	}
	return binds
}

// Others calls yield for every binding field that names further reservations of a ref, with
// what it is.
func (m *Image) Others(yield func(field, ids string) bool) {
	for ref, ids := range m.others {
		if !yield(othersField+ref, ids) {
			return
		}
	}
}
