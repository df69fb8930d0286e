package reservation_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/stockgate/stockgate/internal/test/model"
)

// beginnings are what the cells of a table begin with. Many begin with the same operations: these are done and checked once,
// and each further sale gets a copy of what they have left.
type beginnings []beginning

type beginning struct {
	ops []model.Operation
	is  *twin // in a sale of its own
}

// begin does operations one by one in a new sale, or finds them done.
func (b *beginnings) begin(w *twin, ops ...model.Operation) {
	w.t.Helper()
	for _, known := range *b {
		if reflect.DeepEqual(known.ops, ops) {
			w.setTime(known.is.model.Time)
			w.become(known.is)
			return
		}
	}
	w.do(ops...)
	is := newTwin(w.t, w.servers, fmt.Sprint(w.sale, ".begun"))
	is.become(w)
	*b = append(*b, beginning{ops, is})
}

// become gives a sale that nothing was done to all that another one has.
func (w *twin) become(other *twin) {
	w.t.Helper()
	w.model = other.model.Clone()
	for i, s := range w.servers {
		c := s.store.Shard()
		keys, pipe := c.ShardKeys(w.sale), s.client.Pipeline()
		for k, key := range c.ShardKeys(other.sale) {
			pipe.Copy(background, key, keys[k], 0, false)
		}
		if _, err := pipe.Exec(background); err != nil {
			w.t.Fatalf("%s: %v", s.name, err)
		}
		before := *other.before[i]
		before.Meta = maps.Clone(before.Meta)
		w.before[i], w.journal[i] = &before, slices.Clone(other.journal[i])
	}
}
