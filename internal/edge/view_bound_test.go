package edge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// holdBound holds one unit of "a" under a key and a ref.
func holdBound(t *testing.T, e *edge.Edge, id, key, ref string) {
	t.Helper()
	l, _ := e.Catalogue().Sale("s")
	a := &sale.Attempt{Sale: "s", Buyer: "buyer of " + id, Lines: stocktest.UnitsOfA(1), Key: key, Print: "p", Ref: ref}
	if _, no, err := e.Hold(stocktest.Soon(t), id, l, a, stocktest.UnitsOfA(1), stocktest.HoldOptions); no != nil || err != nil {
		t.Fatal(no, err)
	}
}

// fieldOf is the binding field of a buyer's key.
func fieldOf(t *testing.T, e *edge.Edge, id, key string) string {
	t.Helper()
	return e.KeyField("buyer of "+id, key)
}

// An edge knows what is bound: what it has bound itself at once, what others bind from
// the journal, and what was bound before it came from Redis.
func TestMayBeBound(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		first := following(t, stocktest.Options(b), 9)
		other := following(t, stocktest.Options(b), 9)
		holdBound(t, first, "r1", "key 1", "order-1")
		fields := []string{fieldOf(t, first, "r1", "key 1"), "r|order-1"}
		for _, f := range fields {
			if !first.MayBeBound("s", f) {
				t.Errorf("the edge that bound %s says that it is not", f)
			}
		}
		stocktest.Eventually(t, "the bindings at another edge", func() bool { return other.MayBeBound("s", fields[0]) && other.MayBeBound("s", fields[1]) })
		later := following(t, stocktest.Options(b), 9)
		for name, e := range map[string]*edge.Edge{"first": first, "other": other, "later": later} {
			stocktest.Eventually(t, name+" is up to date", func() bool { return upToDate(t, e) })
			for _, f := range fields {
				if !e.MayBeBound("s", f) {
					t.Errorf("%s: %s is not bound", name, f)
				}
			}
			for _, f := range []string{fieldOf(t, e, "r1", "key 2"), fieldOf(t, e, "r2", "key 1"), "r|order-2"} {
				if e.MayBeBound("s", f) {
					t.Errorf("%s: %s may be bound", name, f)
				}
			}
			if !e.MayBeBound("unknown", "r|order-2") {
				t.Errorf("%s: of an unknown sale something surely is not bound", name)
			}
		}
	})
}

// What a reservation that was given back has bound again is known too, also to an edge
// that came in between.
func TestWhatIsBoundAgainIsKnown(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		e := following(t, stocktest.Options(b), 9)
		holdBound(t, e, "r1", "key 1", "order-1")
		if _, err := e.ReleaseEventually(stocktest.Soon(t), "s", "r1", reservation.SourceShop, ""); err != nil {
			t.Fatal(err)
		}
		later := following(t, stocktest.Options(b), 9)
		if _, err := e.Store.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceAnswer, ""); err != nil {
			t.Fatal(err)
		}
		field := fieldOf(t, e, "r1", "key 1")
		stocktest.Eventually(t, "the bindings", func() bool { return upToDate(t, later) })
		if !later.MayBeBound("s", field) || !later.MayBeBound("s", "r|order-1") {
			t.Error("what was bound again is not known")
		}
	})
}

// A filter that is full grows, and never forgets.
func TestTheFilterGrows(t *testing.T) {
	v := newViewed(t, 1)
	room := v.BoundRoom("s")
	var fields []string
	for i := range 3 * room {
		fields = append(fields, fmt.Sprint("k|", i))
	}
	bind(t, v, fields...)
	pipe := v.server.Client().Pipeline()
	seq, _ := v.Followed("s")
	held := func(field string) {
		record := strings.Repeat("\t", 11) + field + strings.Repeat("\t", 7)
		pipe.Do(stocktest.Soon(t), "XADD", v.direct.Shard().ShardKeys("s")[9], fmt.Sprint(seq, "-0"), "v", "1", "time", "1", "movements", "held\t\t\t\t\t\t"+record)
	}
	for _, f := range fields {
		seq++
		held(f)
	}
	pipe.HSet(stocktest.Soon(t), v.direct.Shard().ShardKeys("s")[0], "seq", seq)
	if _, err := pipe.Exec(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	for i := range 300 { // while it grows
		f := fmt.Sprint("k|late ", i)
		fields = append(fields, f)
		seq++
		bind(t, v, f)
		held(f)
		pipe.HSet(stocktest.Soon(t), v.direct.Shard().ShardKeys("s")[0], "seq", seq)
		if _, err := pipe.Exec(stocktest.Soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	stocktest.Eventually(t, "a larger filter", func() bool { return upToDate(t, v.Edge) && v.BoundRoom("s") > 3*room })
	for _, f := range fields {
		if !v.MayBeBound("s", f) {
			t.Fatalf("%s is not bound", f)
		}
	}
	wrong := 0
	for i := range 10_000 {
		if v.MayBeBound("s", fmt.Sprint("r|", i)) {
			wrong++
		}
	}
	if wrong > 50 {
		t.Errorf("%d of 10000 that are not bound may be", wrong)
	}
}

// One that is full of what is not bound any more is made again, of what is.
func TestTheFilterIsMadeAnew(t *testing.T) {
	v := newViewed(t, 1)
	room := v.BoundRoom("s")
	bind(t, v, "k|stays")
	pipe := v.server.Client().Pipeline()
	seq, _ := v.Followed("s")
	for i := range room + room/16 { // the filter takes a few of them for others
		seq++
		record := strings.Repeat("\t", 11) + fmt.Sprint("k|gone ", i) + strings.Repeat("\t", 7)
		if i == 0 {
			record = strings.Repeat("\t", 11) + "k|stays" + strings.Repeat("\t", 7)
		}
		pipe.Do(stocktest.Soon(t), "XADD", v.direct.Shard().ShardKeys("s")[9], fmt.Sprint(seq, "-0"), "v", "1", "time", "1", "movements", "held\t\t\t\t\t\t"+record)
	}
	pipe.HSet(stocktest.Soon(t), v.direct.Shard().ShardKeys("s")[0], "seq", seq)
	if _, err := pipe.Exec(stocktest.Soon(t)); err != nil {
		t.Fatal(err)
	}
	stocktest.Eventually(t, "a new filter", func() bool { return upToDate(t, v.Edge) && !v.MayBeBound("s", "k|gone 7") })
	if !v.MayBeBound("s", "k|stays") {
		t.Error("what is bound was forgotten")
	}
	if got := v.BoundRoom("s"); got != room {
		t.Errorf("it has room for %d, want %d", got, room)
	}
}
