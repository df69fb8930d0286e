package reservation_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/test/model"
)

// row is one row of the documented tables.
type row struct {
	name, operation string
	circumstances   []string
	states          []state
	cells           []string
}

// documented reads the tables of docs/reservations.md about reservations and about orders in the queue, and the arrows of its drawing.
func documented(t *testing.T) (rows []row, arrows []string) {
	text, err := os.ReadFile("../../../docs/reservations.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if arrow, why, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && strings.Contains(arrow, " --> ") {
			if strings.TrimSpace(why) == "" {
				t.Errorf("the arrow %s does not say why", arrow)
			}
			arrows = append(arrows, strings.ReplaceAll(arrow, "[*]", "unknown"))
		}
	}
	ofReservation, ofQueue, _ := tables(t)
	for _, r := range ofReservation {
		rows = append(rows, parseRow(t, r.name, states, r.cells))
	}
	for _, r := range ofQueue {
		rows = append(rows, parseRow(t, r.name, queueStates, r.cells))
	}
	return rows, arrows
}

// parseRow finds what a row is called among the operations.
func parseRow(t *testing.T, name string, of []state, cells []string) row {
	r := row{name: name, operation: name, states: of, cells: cells}
	for rowOperations[r.operation] == nil {
		i := strings.LastIndex(r.operation, ", ")
		if i < 0 {
			t.Fatalf("the table has a row %q, and there is no such operation", name)
		}
		what := r.operation[i+2:]
		if _, ok := circumstances[what]; !ok {
			t.Fatalf("the row %q names %q, and the test has no such circumstance", name, what)
		}
		r.circumstances = append([]string{what}, r.circumstances...)
		r.operation = r.operation[:i]
	}
	return r
}

// Every operation in every state, as docs/reservations.md has it, on redis-server,
// on the embedded server and in the model. The drawing has the arrows of the tables
// and no other, and no operation is left out.
func TestEveryOperationInEveryState(t *testing.T) {
	t.Parallel()
	on, begun := servers(t), &beginnings{}
	rows, drawn := documented(t)
	done := map[string]bool{}
	var arrows []string
	for n, r := range rows {
		done[r.operation] = true
		got := make([]string, len(r.states))
		for i, want := range r.cells {
			t.Run(r.name+"/"+r.states[i].name, func(t *testing.T) {
				w := newTwin(t, on, fmt.Sprintf("row%d.%d", n, i))
				var arrow string
				got[i], arrow = w.cell(begun, r, i)
				if got[i] != want {
					t.Errorf("got %q, want %q", got[i], want)
				}
				if arrow != "" && !slices.Contains(arrows, arrow) {
					arrows = append(arrows, arrow)
				}
			})
		}
		if !slices.Equal(got, r.cells) {
			t.Errorf("the row should be:\n| %s | %s |", r.name, strings.Join(got, " | "))
		}
	}
	for name := range rowOperations {
		if !done[name] {
			t.Errorf("the table does not say what becomes of %q", name)
		}
	}
	slices.Sort(arrows)
	slices.Sort(drawn)
	if !slices.Equal(arrows, drawn) {
		t.Errorf("the tables have the arrows\n  %s\nand the drawing\n  %s", strings.Join(arrows, "\n  "), strings.Join(drawn, "\n  "))
	}
}

// cell does what a row is called to a reservation in the i-th state. It says what
// came of it, and from which state to which another it went.
func (w *twin) cell(begun *beginnings, r row, i int) (got, arrow string) {
	w.t.Helper()
	first := keyedR()
	swapped, answered := slices.Contains(r.circumstances, "swapped"), slices.Contains(r.circumstances, "answered")
	if slices.Contains(r.circumstances, "without a key") || swapped || answered {
		first = singleR()
		if strings.HasPrefix(r.operation, "swap") || swapped {
			first.Ref = "order-1"
		}
	}
	if slices.Contains(r.circumstances, "outcome backend") || swapped || answered {
		first.Mode = "backend"
	}
	in := r.states[i]
	ops := in.ops(first)
	if slices.Contains(r.circumstances, "made by a swap") {
		first = singleR()
		first.Ref = "order-1"
		ops = inPlace(in.ops(first))
	}
	apply := model.Apply{Starts: noon, Ends: saleEnds, Deltas: []model.Delta{{Cell: "a", Units: 4}, {Cell: "b", Units: 4}}}
	begun.begin(w, append([]model.Operation{apply, model.SetStatus{Status: "open"}}, ops...)...)
	want := in.name
	switch want {
	case "its turn":
		want = "waiting"
	case "sent":
		want = "held"
	}
	if got := w.state("r"); got != want {
		w.t.Fatalf("the reservation is %s, want %s", got, want)
	}
	op := rowOperations[r.operation]
	for _, what := range r.circumstances {
		if change := circumstances[what]; change != nil {
			change(w)
		} else if what == "again" {
			w.run(op(w))
		}
	}
	return w.done(r, op(w))
}

// done does an operation and says what came of it.
func (w *twin) done(r row, op model.Operation) (got, arrow string) {
	w.t.Helper()
	if o, ok := op.(model.Reserve); ok {
		o.Version = w.model.Version
		if slices.Contains(r.circumstances, "another version") {
			o.Version++
		}
		if slices.Contains(r.circumstances, "late") {
			o.NotAfter = w.model.Time - 1
		}
		op = o
	}
	if o, ok := op.(model.Swap); ok {
		o.New.Version = w.model.Version
		op = o
	}
	was := w.model.Clone()
	reply := w.run(op)[0]
	if before, after := stateIn(was, "r"), w.state("r"); before != after {
		arrow = before + " --> " + after
	}
	return w.words(op, was, reply), arrow
}

// words says what came of an operation.
func (w *twin) words(op model.Operation, was *model.Shard, reply model.Reply) string {
	before, after := stateIn(was, "r"), w.state("r")
	effect := len(w.model.Journal) > len(was.Journal)
	if before != after {
		return after + w.more(op, was)
	}
	code := reply[0].(string)
	switch {
	case code == "bound" && reply[4] == int64(1):
		return reply[1].(string)
	case code == "bound":
		return reply[1].(string) + ", to other"
	case code != "ok":
		return code
	}
	switch o := op.(type) {
	case model.Reserve:
		if o.ID != "r" {
			return "new"
		}
	case model.Swap:
		if effect {
			return "new"
		}
	case model.Lookup:
		return "nothing"
	case model.Free:
		if len(was.Bindings) > len(w.model.Bindings) {
			return "freed"
		}
	case model.Extend:
		if effect {
			return "later"
		}
	case model.Return:
		if effect {
			return strings.TrimPrefix(reply[1].(string), "a ") + " back"
		}
	case model.Sold:
		if effect {
			return strings.TrimPrefix(w.more(op, was), ", ")
		}
	case model.Probe:
		if len(reply) > 2 {
			return "asks"
		}
		return "–"
	case model.Probed:
		if w.model.Records["r"].Probes.Absent > was.Records["r"].Probes.Absent {
			return "counts"
		}
	case model.Turn:
		switch taker := w.model.Queue.Orders["r"].Taker; {
		case slices.Contains(reply, any("r")):
			return "gets it"
		case taker == "-" && was.Queue.Orders["r"].Taker != "-":
			return "waits again"
		case taker != was.Queue.Orders["r"].Taker && taker != o.Edge:
			return "its own edge gets it"
		}
		return "–"
	case model.Yield:
		return "waits again"
	case model.Expire, model.Forget, model.Look:
		return "–"
	}
	return "same"
}

// more says what became of the units that an order has beyond its reservation, or that it lacks.
func (w *twin) more(op model.Operation, was *model.Shard) string {
	if _, ended := op.(model.Release); ended && w.model.Records["r+"] != nil && was.Records["r+"] == nil {
		return fmt.Sprintf(", %d stays held", w.model.Records["r+"].Lines[0].Units)
	}
	o, ok := op.(model.Sold)
	if !ok {
		return ""
	}
	r := w.model.Records["r"]
	more := w.model.Records[o.More]
	switch {
	case len(r.Returned) > 0:
		return fmt.Sprintf(", %d back", r.Returned[0].Units)
	case more != nil && was.Records[o.More] == nil:
		return fmt.Sprintf(", %d more %s", more.Lines[0].Units, more.State)
	}
	return ""
}

// do runs operations one by one, from noon on.
func (w *twin) do(ops ...model.Operation) {
	w.t.Helper()
	if w.model.Time == 0 {
		w.setTime(noon)
	}
	for _, op := range ops {
		if at, ok := op.(tick); ok {
			w.setTime(int64(at))
			continue
		}
		if reply := w.run(op)[0]; reply[0] != "ok" {
			w.t.Fatalf("%+v answers %v", op, reply)
		}
	}
}

func (w *twin) state(id string) string { return stateIn(w.model, id) }

func stateIn(s *model.Shard, id string) string {
	if r, ok := s.Records[id]; ok {
		if r.State == model.Held && r.Mode == "queued" {
			return string(model.Waiting)
		}
		return string(r.State)
	}
	return "unknown"
}
