package reservation_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// tableRow is what a table of docs/reservations.md says of one operation: the answer in each state.
type tableRow struct {
	name  string
	cells []string
}

// stateNames are the states that tables have: of a reservation, of an order in the queue, and of an entry on the waiting list.
func stateNames() (reservation, queue, entry []string) {
	for _, s := range states {
		reservation = append(reservation, s.name)
	}
	for _, s := range queueStates {
		queue = append(queue, s.name)
	}
	for _, s := range entryStates {
		entry = append(entry, s.name)
	}
	return reservation, queue, entry
}

// tables reads all tables of docs/reservations.md. Of each operation it has a cell for each state, also where one column is
// for several, and where several operations share a row.
func tables(t *testing.T) (reservation, queue, entry []tableRow) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reservations.md")
	if err != nil {
		t.Fatal(err)
	}
	var (
		ofReservation, ofQueue, ofEntry = stateNames()
		columns                         []int
		into                            *[]tableRow
		base                            string
	)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			into = nil
			continue
		}
		if strings.HasPrefix(line, "|-") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if into == nil {
			base = ""
			if columns = columnsOf(cells[1:], ofReservation); columns != nil {
				into = &reservation
			} else if columns = columnsOf(cells[1:], ofQueue); columns != nil {
				into = &queue
			} else if columns = columnsOf(cells[1:], ofEntry); columns != nil {
				into = &entry
			} else {
				t.Fatalf("the table %q does not have each state in one column", line)
			}
			continue
		}
		if len(cells) != slices.Max(columns)+2 {
			t.Fatalf("the row %q has %d cells", line, len(cells))
		}
		var names []string
		names, base = rowNames(cells[0], base)
		for _, name := range names {
			if slices.ContainsFunc(*into, func(r tableRow) bool { return r.name == name }) {
				t.Errorf("two rows say what becomes of %q", name)
			}
			r := tableRow{name: name}
			for _, column := range columns {
				r.cells = append(r.cells, cells[column+1])
			}
			*into = append(*into, r)
		}
	}
	return reservation, queue, entry
}

// columnsOf says which column of a table each of these states is in: the one that names it, or "others". It is nil if the table
// has other states, names one twice, or lacks one.
func columnsOf(head, of []string) []int {
	in := make([]int, len(of))
	for i := range in {
		in[i] = -1
	}
	for column, names := range head {
		if names == "others" {
			continue
		}
		for name := range strings.SplitSeq(names, ", ") {
			i := slices.Index(of, name)
			if i < 0 || in[i] >= 0 {
				return nil
			}
			in[i] = column
		}
	}
	others := slices.Index(head, "others")
	for i := range in {
		if in[i] < 0 {
			in[i] = others
		}
	}
	if slices.Contains(in, -1) || others >= 0 && !slices.Contains(in, others) {
		return nil
	}
	return in
}

// rowNames are the operations that share a row, one a line. A line "… what" is the last one that has no dots, of this row or of
// one above, in the circumstance "what".
func rowNames(cell, above string) (names []string, base string) {
	base = above
	for name := range strings.SplitSeq(cell, "<br>") {
		what, more := strings.CutPrefix(name, "… ")
		if more {
			name = base + ", " + what
		} else {
			base = name
		}
		names = append(names, name)
	}
	return names, base
}
