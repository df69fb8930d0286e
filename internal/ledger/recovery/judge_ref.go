package recovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// under reports whether a reservation must be found by a ref.
func (t *expected) under(ref string) bool {
	return t != nil && t.Ref == ref && t.State.Named()
}

// judgeByRef judges one of the two fields that find the reservations of a ref: each
// reservation that is not released or expired is in them once, as far as there is room.
func (b *batch) judgeByRef(n reservation.Named, has reservation.KeyValue, ref string) *finding {
	is := record.ByName{Ref: ref}
	first, others := is.Fields()
	at := func(field string) string { return b.values[reservation.Named{Part: n.Part, Name: field}].Text }
	is.Read(at(first), at(others))
	must := record.ByName{Ref: ref, More: is.More}
	for _, id := range is.IDs {
		if b.history.reservations[id].under(ref) && !slices.Contains(must.IDs, id) {
			must.IDs = append(must.IDs, id)
		}
	}
	var missing []string
	for id := range b.history.wants[n.Name] {
		if b.history.reservations[id].under(ref) && !slices.Contains(must.IDs, id) {
			missing = append(missing, id)
		}
	}
	slices.SortFunc(missing, func(x, y string) int {
		if earlier(b.history.reservations[x], b.history.reservations[y], x, y) {
			return -1
		}
		return 1
	})
	if !is.More || len(must.IDs) == 0 { // otherwise they are the ones that did not fit
		must.IDs = append(must.IDs, missing...)
	}
	want, rest := must.Values()
	if n.Name == others {
		want = rest
	}
	if has.Text == want {
		return nil
	}
	text := fmt.Sprintf("the ref %s finds %s in redis, and must find %s", ref, short(cmp.Or(has.Text, "nothing")), cmp.Or(want, "nothing"))
	if want == "" {
		return b.differs(n, has, nothing, text, "free it", "was "+valueWord(has))
	}
	v := b.differs(n, has, value(want), text, "let it find "+want, "was "+valueWord(has))
	if id, _, _ := strings.Cut(want, " "); b.history.reservations[id] != nil {
		v.Record = b.history.reservations[id].record("")
	}
	return v
}
