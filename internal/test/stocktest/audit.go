package stocktest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/ledger/recovery"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/test/model"
)

// Audit computes the stock from the reservations, and again from the journal, and returns what
// does not agree. It does not use the model's shard.
func (r *Raw) Audit(journal []model.Entry) error {
	told, err := model.Replay(journal)
	if err != nil {
		return err
	}
	image, err := r.count(told)
	if err != nil {
		return err
	}
	reserved := make(map[string]model.Cell)
	for name, c := range image.Cells {
		reserved[name] = model.Cell{Held: c.Held, InDoubt: c.InDoubt, Confirmed: c.Confirmed}
	}
	if err := r.auditCells(reserved, told.Cells); err != nil {
		return err
	}
	limits := make(map[string]string)
	for field, c := range image.Limits {
		limits[field] = fmt.Sprintf("%d %d", c.Charged, c.Pending)
	}
	if !maps.Equal(limits, r.Limits) {
		return fmt.Errorf("the limits are %v, the reservations say %v", r.Limits, limits)
	}
	if err := r.auditUnpaid(image); err != nil {
		return err
	}
	if err := r.auditBindings(image); err != nil {
		return err
	}
	if seq := strconv.Itoa(len(journal)); len(r.Meta) > 0 && r.Meta["seq"] != seq {
		return fmt.Errorf("seq is %s, the journal has %s entries", r.Meta["seq"], seq)
	}
	return nil
}

// count adds up all reservations. Each must be in the state that the journal gives, and listed
// where its state belongs.
func (r *Raw) count(told *model.Replayed) (*recovery.Image, error) {
	image := recovery.NewImage(time.Time{}, time.Time{})
	lists := map[record.State]map[string]int64{"held": r.deadlines, "in_doubt": r.inDoubt, "unbacked": r.unbacked, record.Tombstone: r.Tombstones}
	listed := 0
	for id, text := range r.Records {
		rec, err := record.Parse(text)
		if err != nil || rec.Text() != text {
			return nil, fmt.Errorf("%s: the rec is %q, error %v", id, text, err)
		}
		list, at := rec.Listed()
		if rec.State == record.Tombstone {
			list, at = rec.State, rec.Deadline
		} else {
			if s := told.States[id]; string(s) != string(rec.State) {
				return nil, fmt.Errorf("%s is %s, the journal says %q", id, rec.State, s)
			}
			image.Add(id, rec)
		}
		if list != "" {
			listed++
			if score, ok := lists[list][id]; !ok || score != at.UnixMilli() {
				return nil, fmt.Errorf("%s is %s since or until %v, but listed %v at %d", id, rec.State, at, ok, score)
			}
		}
		if len(rec.Returned) > 0 && rec.State != record.Confirmed {
			return nil, fmt.Errorf("%s has returned %v, and is %s", id, rec.Returned, rec.State)
		}
	}
	if n := len(r.deadlines) + len(r.inDoubt) + len(r.unbacked) + len(r.Tombstones); n != listed {
		return nil, fmt.Errorf("%d reservations are listed, %d should be", n, listed)
	}
	for id, s := range told.States {
		forgotten := (s == model.Released || s == model.Expired) && r.Meta["forgotten"] != ""
		if _, ok := r.Records[id]; !ok && !forgotten {
			return nil, fmt.Errorf("%s is in the journal and nowhere else", id)
		}
	}
	return image, nil
}

// auditUnpaid checks how many unpaid holds each counter has.
func (r *Raw) auditUnpaid(image *recovery.Image) error {
	held := maps.Collect(image.Unpaid)
	for field, text := range r.Unpaid {
		first, times, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil || n != held[field] || n == 0 && times == "" {
			return fmt.Errorf("the counter of unpaid holds %s is %q, the reservations say %d", field, text, held[field])
		}
		delete(held, field)
	}
	if len(held) > 0 {
		return fmt.Errorf("there are no counters of the unpaid holds %v", held)
	}
	return nil
}

// auditBindings checks that the bindings of each hold, and the ref of each confirmed
// reservation, belong to the right reservation, and that nothing is bound to an ended one.
func (r *Raw) auditBindings(image *recovery.Image) error {
	for id, text := range r.Records {
		rec, err := record.Parse(text)
		if err != nil {
			return err
		}
		isHold := rec.State == record.Held || rec.State == record.InDoubt
		for _, field := range []string{rec.Guard, record.RefField(rec.Buyer, rec.Ref)} {
			// an attempt without a key may have been freed; a key's time may be over
			if strings.HasPrefix(field, "d|") || !isHold && (rec.State != record.Confirmed || strings.HasPrefix(field, "k|")) {
				continue
			}
			owner := r.bindings[field]
			// Of two that are confirmed the first has the field. Their times do not show which
			// one was first if they are equal, or if a lead has ended, where the clock goes
			// back (docs/failover.md#clocks).
			other, err := record.Parse(r.Records[owner])
			_, hadLead := r.Meta["lead"]
			if err == nil && other.State == rec.State && (other.Changed.Equal(rec.Changed) || hadLead && rec.State == record.Confirmed) {
				continue
			}
			if image.Owns(id, rec, field) && owner != id {
				return fmt.Errorf("%s is %s, but %s is bound to %q", id, rec.State, field, owner)
			}
		}
	}
	for field, id := range r.bindings {
		if field[0] == 'r' || field[0] == 'm' || field[0] == 'x' { // these are compared with the model's fields
			continue
		}
		f := strings.Split(r.Records[id], "\t")
		switch {
		case len(f) != 20 || f[11] != field && record.RefField(f[6], f[14]) != field:
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
func (r *Raw) auditCells(reserved, told map[string]model.Cell) error {
	for name, text := range r.Cells {
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
			if _, ok := r.Cells[name]; !ok && c != (model.Cell{}) {
				return fmt.Errorf("%s is gone, and yet it is %+v", name, c)
			}
		}
	}
	return nil
}
