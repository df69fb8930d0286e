package reservation_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/model"
)

// books are what the reservations of a shard say, one by one.
type books struct {
	cells  map[string]model.Cell // without stock and available
	limits map[string]string     // as they are kept
}

// audit computes the books from the reservations themselves, and again from the
// journal, and says what does not agree. It knows nothing of the model's shard.
func (r *raw) audit(journal []model.Entry) error {
	told, err := model.Replay(journal)
	if err != nil {
		return err
	}
	b, err := r.count(told)
	if err != nil {
		return err
	}
	if err := r.auditCells(b.cells, told.Cells); err != nil {
		return err
	}
	if !maps.Equal(b.limits, r.limits) {
		return fmt.Errorf("the limits are %v, the reservations say %v", r.limits, b.limits)
	}
	if err := r.auditBindings(); err != nil {
		return err
	}
	if seq := strconv.Itoa(len(journal)); len(r.meta) > 0 && r.meta["seq"] != seq {
		return fmt.Errorf("seq is %s, the journal has %s entries", r.meta["seq"], seq)
	}
	return nil
}

// count adds up all reservations. Each must be in the state that the journal says,
// and listed where its state belongs.
func (r *raw) count(told *model.Replayed) (*books, error) {
	b := &books{map[string]model.Cell{}, map[string]string{}}
	counted := map[string]model.Counter{}
	lists := map[string]map[string]int64{"held": r.deadlines, "in_doubt": r.inDoubt, "unbacked": r.unbacked, "tombstone": r.tombstones}
	listed := 0
	for id, text := range r.records {
		f := strings.Split(text, "\t")
		if len(f) != 19 || f[18] != "" {
			return nil, fmt.Errorf("%s: the record is %q", id, text)
		}
		state, at := f[0], f[4] // since when
		if state == "held" || state == "tombstone" {
			at = f[1] // until when
		}
		if list, ok := lists[state]; ok {
			listed++
			if score, ok := list[id]; !ok || strconv.FormatInt(score, 10) != at {
				return nil, fmt.Errorf("%s is %s since or until %s, but listed %v at %d", id, state, at, ok, score)
			}
		}
		if s := told.States[id]; state != "tombstone" && string(s) != state {
			return nil, fmt.Errorf("%s is %s, the journal says %q", id, state, s)
		}
		lines, err := parseLines(f[7])
		if err != nil {
			return nil, err
		}
		charges, err := parseLines(f[8])
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			c := b.cells[l.Cell]
			switch state {
			case "held":
				c.Held += l.Units
			case "in_doubt":
				c.InDoubt += l.Units
			case "confirmed":
				c.Confirmed += l.Units
			}
			b.cells[l.Cell] = c
		}
		returned, err := parseLines(f[16])
		if err != nil {
			return nil, err
		}
		for _, l := range returned {
			c := b.cells[l.Cell]
			if c.Confirmed -= l.Units; state != "confirmed" {
				return nil, fmt.Errorf("%s has returned %v, and is %s", id, returned, state)
			}
			b.cells[l.Cell] = c
		}
		for _, charge := range charges {
			c := counted[charge.Cell]
			switch state {
			case "held", "in_doubt":
				c.Charged += charge.Units
				c.Pending += charge.Units
			case "confirmed":
				c.Charged += charge.Units
			}
			counted[charge.Cell] = c
		}
	}
	if n := len(r.deadlines) + len(r.inDoubt) + len(r.unbacked) + len(r.tombstones); n != listed {
		return nil, fmt.Errorf("%d reservations are listed, %d should be", n, listed)
	}
	for id := range told.States {
		if _, ok := r.records[id]; !ok {
			return nil, fmt.Errorf("%s is in the journal and nowhere else", id)
		}
	}
	for field, c := range counted {
		if c.Charged > 0 {
			b.limits[field] = fmt.Sprintf("%d %d", c.Charged, c.Pending)
		}
	}
	return b, nil
}

// auditBindings checks that nobody else can have what a hold has bound, but what is
// confirmed under it; that the ref of what is confirmed stays taken; and that nothing is
// bound to what has ended.
func (r *raw) auditBindings() error {
	confirmed := func(id string) bool { return strings.HasPrefix(r.records[id], "confirmed\t") }
	for id, text := range r.records {
		f := strings.Split(text, "\t")
		isHold := f[0] == "held" || f[0] == "in_doubt"
		for _, field := range []string{f[11], "r|" + f[14]} {
			// one without a key may have been freed, a key's time may be over
			if field == "" || field == "r|" || strings.HasPrefix(field, "d|") || !isHold && (field[0] == 'k' || !confirmed(id)) {
				continue
			}
			if owner := r.bindings[field]; owner != id && !confirmed(owner) {
				return fmt.Errorf("%s is %s, but %s is bound to %q", id, f[0], field, owner)
			}
		}
	}
	for field, id := range r.bindings {
		f := strings.Split(r.records[id], "\t")
		switch {
		case len(f) != 19 || f[11] != field && "r|"+f[14] != field:
			return fmt.Errorf("%s is bound to %s, which does not name it", field, id)
		case f[0] == "held", f[0] == "in_doubt":
		case f[0] == "confirmed" && field[0] != 'd', f[0] == "unbacked" && field[0] != 'd':
		default:
			return fmt.Errorf("%s is bound to %s, which is %s", field, id, f[0])
		}
	}
	return nil
}

// auditCells compares every cell with the reservations and with the journal.
func (r *raw) auditCells(reserved, told map[string]model.Cell) error {
	for name, text := range r.cells {
		var c model.Cell
		if _, err := fmt.Sscanf(text, "%d %d %d %d %d", &c.Stock, &c.Available, &c.Held, &c.InDoubt, &c.Confirmed); err != nil {
			return fmt.Errorf("the cell %s is %q", name, text)
		}
		if err := c.Check(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if u := reserved[name]; c.Held != u.Held || c.InDoubt != u.InDoubt || c.Confirmed != u.Confirmed {
			return fmt.Errorf("%s is %+v, its reservations say %+v", name, c, u)
		}
		if c != told[name] {
			return fmt.Errorf("%s is %+v, the journal says %+v", name, c, told[name])
		}
	}
	for _, others := range []map[string]model.Cell{reserved, told} {
		for name, c := range others {
			if _, ok := r.cells[name]; !ok && c != (model.Cell{}) {
				return fmt.Errorf("%s is gone, and yet it is %+v", name, c)
			}
		}
	}
	return nil
}
