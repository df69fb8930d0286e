package reservation

import (
	"context"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/shard"
)

// Found are the reservations with a name: an id or a ref.
type Found struct {
	Records []Record
	// More says that there are others, which can be found only by their ids.
	More bool
}

// Named finds reservations of a sale by their ids or the shop's refs. Names that Redis does
// not know are left out. An id has one reservation; a ref has one of each buyer who used
// it, except released and expired ones.
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
			first, others := (&record.ByName{Ref: name}).Fields()
			refs, fields = append(refs, name), append(fields, first, others)
		}
	}
	if len(fields) == 0 {
		return out, nil
	}
	bound, err := s.shard.Redis.HMGet(ctx, s.shard.ShardKeys(sale)[shard.BindingsKey], fields...).Result()
	if err != nil {
		return nil, shard.Explain(err)
	}
	var ids []string
	for i, ref := range refs {
		first, _ := bound[2*i].(string)
		others, _ := bound[2*i+1].(string)
		var n record.ByName
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
