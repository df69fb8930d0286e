package reservation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/model"
)

// What an operator confirms is found by its ref, of however many buyers that is: a payment's webhook
// looks there for what was paid.
func TestConfirmedByAnOperatorIsFound(t *testing.T) {
	w := newTwin(t, servers(t), "named sold")
	w.do(model.Apply{Starts: noon, Ends: saleEnds, Deltas: []model.Delta{{Cell: "a", Units: 40}}}, model.SetStatus{Status: "open"})
	id := func(i int) string { return fmt.Sprint("r", i) }
	wants := func(first string, others ...string) {
		t.Helper()
		got := w.model.Bindings["r|order-1"] + " " + w.model.Bindings["m|order-1"]
		if want := strings.Join(append([]string{first}, others...), " "); got != want {
			t.Errorf("found are %s, want %s", got, want)
		}
	}
	ids := make([]string, record.MaxNamed)
	for i := range record.MaxNamed + 3 {
		r := take(id(i), 1)
		r.Ref, r.Buyer, r.Version = "order-1", fmt.Sprint("buyer ", i), w.model.Version
		w.do(r)
		if i < len(ids) {
			ids[i] = id(i)
		}
	}
	confirm := func(i int) {
		t.Helper()
		w.do(model.Confirm{ID: id(i), Word: "operator"})
	}
	wants(ids[0], append(ids[1:], "+")...)
	confirm(record.MaxNamed - 1) // which is found
	confirm(record.MaxNamed)
	ids[record.MaxNamed-2] = id(record.MaxNamed)
	wants(ids[0], append(ids[1:], "+")...)
	for range 2 {
		confirm(record.MaxNamed)
	}
	wants(ids[0], append(ids[1:], "+")...)
	for _, held := range ids[:record.MaxNamed-2] {
		w.do(model.Release{ID: held, Word: "shop"})
	}
	wants(ids[record.MaxNamed-2], ids[record.MaxNamed-1], "+")
	// one that was confirmed otherwise, when it is confirmed again
	w.do(model.Confirm{ID: id(record.MaxNamed + 1), Word: "shop"})
	wants(ids[record.MaxNamed-2], ids[record.MaxNamed-1], "+")
	confirm(record.MaxNamed + 1)
	wants(ids[record.MaxNamed-2], ids[record.MaxNamed-1], id(record.MaxNamed+1), "+")
}
