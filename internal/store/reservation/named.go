package reservation

import (
	"context"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Found are the reservations with a name: an id or a ref.
type Found struct {
	Records []Record
	// More says that there are others, which can be found only by their ids.
	More bool
}

// Named finds reservations of a sale by their ids or the shop's refs. Names that Redis does
// not know are left out. An id has one reservation; a ref has one of each buyer who used
// it, except released and expired ones. A name that is given twice is found once.
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
	wanted := make(map[string]bool)
	for _, name := range names {
		if out[name] == nil && !wanted[name] {
			wanted[name] = true
			first, others := (&record.ByName{Ref: name}).Fields()
			refs, fields = append(refs, name), append(fields, first, others)
		}
	}
	if len(fields) == 0 {
		return out, nil
	}
	bound, err := s.shard.Data(sale).Values(ctx, shard.BindingsKey, fields...)
	if err != nil {
		return nil, err
	}
	var ids []string
	for i, ref := range refs {
		var n record.ByName
		n.Read(bound.Text(2*i), bound.Text(2*i+1))
		ids = append(ids, n.IDs...)
		if n.More {
			out[ref] = &Found{More: true}
		}
	}
	if records, err = s.records(ctx, sale, ids); err != nil {
		return nil, err
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

// swapped is the cause of holds that begin or end because a cart was changed, as in lua/states.lua.
const swapped = "swapped for another cart"

// HeldAgain reports whether a reservation holds what the token of an earlier cart names, because the
// hold in its place has ended, see lua/release.lua. ended is the id of that one.
func (r *Record) HeldAgain() (ended string, ok bool) {
	ended, ok = strings.CutSuffix(r.ID, "+")
	return ended, ok && r.State == record.Held && r.Cause == swapped
}

// ByRef finds the reservations with a ref: in one sale, or in all where sale is empty. Those
// that are held, in doubt, confirmed or unbacked come from every buyer who used it. Where there
// are none, it is the one that ended last of those that have expired, or that the shop's API or
// a payment's webhook released.
func (s *Store) ByRef(ctx context.Context, sale, ref string) (Found, error) {
	sales := []string{sale}
	if sale == "" {
		var err error
		if sales, err = s.journal.Sales(ctx); err != nil {
			return Found{}, err
		}
	}
	var live, ended Found
	for _, name := range sales {
		more, err := s.byRef(ctx, name, ref, &live.Records, &ended.Records)
		if err != nil {
			return Found{}, err
		}
		live.More = live.More || more
	}
	if len(live.Records) > 0 || live.More {
		return live, nil
	}
	return ended, nil
}

// byRefReadings is how often byRef reads a ref whose reservations change at the same time.
const byRefReadings = 4

// byRef reads which reservations the ref lists, and then these. What is not live any more may
// have been swapped in between: it is read again until the list stays.
func (s *Store) byRef(ctx context.Context, sale, ref string, live, ended *[]Record) (more bool, err error) {
	n := record.ByName{Ref: ref}
	first, others := n.Fields()
	var was, bound shard.Fields
	var records []Record
	for range byRefReadings {
		bound, err = s.shard.Data(sale).Values(ctx, shard.BindingsKey, first, others, record.EndField+ref)
		if err != nil {
			return false, err
		}
		if slices.Equal(was, bound) {
			break
		}
		was = bound
		n.Read(bound.Text(0), bound.Text(1))
		ids := n.IDs
		if end := bound.Text(2); end != "" && !slices.Contains(ids, end) {
			ids = append(ids, end)
		}
		if records, err = s.records(ctx, sale, ids); err != nil {
			return false, err
		}
		records = slices.DeleteFunc(records, func(r Record) bool { return r.Ref != ref })
		over := func(r Record) bool { return !r.State.Named() && slices.Contains(n.IDs, r.ID) }
		if !slices.ContainsFunc(records, over) {
			break
		}
	}
	for _, r := range records {
		if r.State.Named() {
			*live = append(*live, r)
		} else {
			*ended = append(*ended, r)
		}
	}
	return n.More, nil
}
