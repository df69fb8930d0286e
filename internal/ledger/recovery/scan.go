package recovery

import (
	"cmp"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// scan reads everything that Redis has, a chunk at a time, and records what differs
// from the history as a suspect: it may have changed since the history was read.
func (r *run) scan(ctx context.Context) error {
	for _, look := range []func(context.Context){r.scanRecords, r.scanCells, r.scanLimits, r.scanUnpaid, r.scanBindings, r.scanSets, r.scanAnswers} {
		if look(ctx); r.scanError != nil {
			return r.scanError
		}
	}
	r.report.Reservations, r.report.Cells, r.report.Limits = len(r.history.reservations), len(r.cellNames()), len(r.history.totals.Limits)
	return nil
}

func (r *run) scanRecords(ctx context.Context) {
	for id, text := range r.each(ctx, reservation.PartRecord) {
		t := r.history.reservations[id]
		if t != nil {
			t.seen = true
			if !t.sameRecord(text) {
				r.suspectReservation(id)
			}
			continue
		}
		p, ok := parse(text)
		if ok && p.fields.State == record.Tombstone {
			r.tombstones[id] = record.MsOf(p.fields.Deadline)
		} else {
			r.suspectReservation(id)
		}
	}
	now := r.store.Now(r.sale)
	for id, t := range r.history.reservations {
		if !t.seen && !t.over(now) {
			r.suspectReservation(id)
		}
	}
}

// suspectReservation suspects a record and everything that refers to it.
func (r *run) suspectReservation(id string) {
	r.suspect(reservation.PartRecord, id)
	r.suspect(reservation.PartTombstones, id)
}

// cellNames are all cells that must exist.
func (r *run) cellNames() map[string]bool {
	all := maps.Clone(r.listed)
	for name := range r.history.totals.Cells {
		all[name] = true
	}
	return all
}

// scanCells suspects all cells, because they change all the time.
func (r *run) scanCells(ctx context.Context) {
	for name := range r.each(ctx, reservation.PartCell) {
		r.suspect(reservation.PartCell, name)
	}
	for name := range r.cellNames() {
		r.suspect(reservation.PartCell, name)
	}
}

func (r *run) scanLimits(ctx context.Context) {
	seed, seen := maphash.MakeSeed(), make(map[uint64]struct{}) // a field whose hash collides is found by the next run
	for field, text := range r.each(ctx, reservation.PartLimit) {
		seen[maphash.String(seed, field)] = struct{}{}
		if text != limitText(r.history.totals.Limits[field]) {
			r.suspect(reservation.PartLimit, field)
		}
	}
	for field := range r.history.totals.Limits {
		if _, ok := seen[maphash.String(seed, field)]; !ok {
			r.suspect(reservation.PartLimit, field)
		}
	}
}

func (r *run) scanUnpaid(ctx context.Context) {
	seen := make(map[string]bool)
	for field, text := range r.each(ctx, reservation.PartUnpaid) {
		seen[field] = true
		if n, _, ok := unpaidHolds(text); !ok || n != r.history.totals.Unpaid[field] {
			r.suspect(reservation.PartUnpaid, field)
		}
	}
	for field := range r.history.totals.Unpaid {
		if !seen[field] {
			r.suspect(reservation.PartUnpaid, field)
		}
	}
}

func (r *run) scanBindings(ctx context.Context) {
	seed, seen := maphash.MakeSeed(), make(map[uint64]struct{}) // a field whose hash collides is found by the next run
	under := make(map[uint64]struct{})                          // ids behind the refs that find them; with + those that find no more
	key := func(ref, id string) uint64 { return maphash.String(seed, ref+" "+id) }
	for field, text := range r.each(ctx, reservation.PartBinding) {
		if ref, ok := record.NamedField(field); ok {
			for id := range strings.FieldsSeq(text) {
				if under[key(ref, id)] = struct{}{}; id != "+" && !r.history.reservations[id].under(ref) {
					r.suspect(reservation.PartBinding, field)
				}
			}
			continue
		}
		if record.IsEndField(field) {
			continue // it binds nothing, and what it finds is looked at
		}
		seen[maphash.String(seed, field)] = struct{}{}
		if t := r.history.reservations[text]; t == nil || !t.names(field) || t.BindingRank(field) == record.RankNone {
			r.suspect(reservation.PartBinding, field)
		}
	}
	for id, t := range r.history.reservations {
		_, found := under[key(t.Ref, id)]
		if _, more := under[key(t.Ref, "+")]; t.under(t.Ref) && t.Ref != "" && !found && !more {
			first, others := (&record.ByName{Ref: t.Ref}).Fields()
			r.suspect(reservation.PartBinding, first)
			r.suspect(reservation.PartBinding, others)
		}
		for _, field := range t.Fields() {
			if t.BindingRank(field) == record.RankNone || record.IsSingleField(field) {
				continue
			}
			if _, ok := seen[maphash.String(seed, field)]; !ok {
				r.suspect(reservation.PartBinding, field)
			}
		}
	}
}

func (r *run) scanSets(ctx context.Context) {
	for _, part := range []reservation.ShardPart{reservation.PartDeadlines, reservation.PartInDoubt, reservation.PartUnbacked, reservation.PartTombstones} {
		there := make(map[string]bool)
		for id, score := range r.each(ctx, part) {
			there[id] = true
			if part == reservation.PartTombstones {
				if at, ok := r.tombstones[id]; !ok || !sameScore(score, at) {
					r.suspectReservation(id)
				}
				continue
			}
			t := r.history.reservations[id]
			if t == nil {
				r.suspect(part, id)
			} else if p, at := listed(&t.Record); p != part || !sameScore(score, at) {
				r.suspect(part, id)
			}
		}
		for id := range r.tombstones {
			if part == reservation.PartTombstones && !there[id] {
				r.suspectReservation(id)
			}
		}
		for id, t := range r.history.reservations {
			if p, _ := listed(&t.Record); p == part && !there[id] {
				r.suspect(part, id)
			}
		}
	}
}

// scanAnswers suspects all adjustments and returns: there are few.
func (r *run) scanAnswers(ctx context.Context) {
	for id := range r.each(ctx, reservation.PartAdjustment) {
		r.suspect(reservation.PartAdjustment, id)
	}
	for _, a := range r.history.adjusted {
		if a.id != "" {
			r.suspect(reservation.PartAdjustment, a.id)
		}
	}
	for key := range r.each(ctx, reservation.PartReturn) {
		r.suspect(reservation.PartReturn, key)
	}
	for id, list := range r.history.returned {
		for _, b := range list {
			r.suspect(reservation.PartReturn, id+"|"+b.id)
		}
	}
}

// sorted returns the suspects in a stable order: those of one reservation are adjacent.
func (r *run) sorted() []reservation.Named {
	all := slices.Collect(maps.Keys(r.suspects))
	slices.SortFunc(all, func(a, b reservation.Named) int {
		return cmp.Or(
			strings.Compare(firstOf(a), firstOf(b)),
			strings.Compare(b.Name, a.Name),
			strings.Compare(string(a.Part), string(b.Part)),
		)
	})
	return all
}

// firstOf returns a value's name; for both fields of a ref, the name of the first. What
// the second must be depends on the first, so the first is repaired before it.
func firstOf(n reservation.Named) string {
	if n.Part == reservation.PartBinding {
		if ref, ok := record.NamedField(n.Name); ok {
			first, _ := (&record.ByName{Ref: ref}).Fields()
			return first
		}
	}
	return n.Name
}

func limitText(c record.Count) string {
	return strconv.FormatInt(c.Charged, 10) + " " + strconv.FormatInt(c.Pending, 10)
}

// sameScore compares a score as Redis writes it.
func sameScore(text string, at int64) bool {
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && f == float64(at)
}
