package recovery

import (
	"context"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// MergeReservation makes a reservation of the previous life in the present one, as far as
// its units are available. One that exists already is left as it is, except a hold that
// was extended, was sent to the shop or has expired in the previous life. It returns the
// reservation's state now, and whether it was made.
func (r *Restorer) MergeReservation(ctx context.Context, sale, id string, f *record.Record) (state record.State, merged bool, err error) {
	replies, err := r.shard.RunReplicated(ctx, sale, shard.Op(lua.Merge, id, f.Text()))
	if err != nil {
		return "", false, err
	}
	return record.State(replies[0].Text(1)), replies[0].Number(2) == 1, nil
}

// scanPrevious calls yield for every field of one of the previous life's keys. A field may
// come twice. place is the key's index among shard.PreviousKeys.
func (r *Restorer) scanPrevious(ctx context.Context, sale string, place int, yield func(field, value string) error) error {
	return r.shard.Previous(sale).Each(ctx, place, "", 500, yield)
}

// PreviousReservations calls yield for every reservation of the previous life, and
// unreadable for what cannot be read. One may come twice.
func (s *Restorer) PreviousReservations(ctx context.Context, sale string, unreadable func(what, text string), yield func(id string, r *record.Record) error) error {
	return s.scanPrevious(ctx, sale, shard.RecordsKey, func(id, text string) error {
		r, err := record.Parse(text)
		if err == nil {
			switch r.State {
			case record.Tombstone:
				return nil
			case record.Held, record.InDoubt, record.Confirmed, record.Released, record.Expired, record.Unbacked:
				return yield(id, r)
			}
		}
		unreadable("reservation "+id, text)
		return nil
	})
}

// PreviousRecord reads the record of a reservation of the previous life; nil: there is none.
func (r *Restorer) PreviousRecord(ctx context.Context, sale, id string) (*record.Record, error) {
	return recordIn(ctx, r.shard.Previous(sale), id)
}

// PreviousAdjustments calls yield for every adjustment of the previous life, and unreadable
// for what cannot be read. One may come twice.
func (r *Restorer) PreviousAdjustments(ctx context.Context, sale string, unreadable func(what, text string), yield func(id string, l record.CellUnits) error) error {
	return r.scanPrevious(ctx, sale, shard.AdjustmentsKey, func(id, text string) error {
		words := strings.Fields(text)
		if len(words) == 3 {
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
				return yield(id, record.CellUnits{Cell: words[0], Units: n})
			}
		}
		unreadable("adjustment "+id, text)
		return nil
	})
}

// PreviousReturn is a return of the previous life.
type PreviousReturn struct {
	Reservation, ID string
	Restock         bool
	Lines           []record.CellUnits
}

// PreviousReturns calls yield for every return of the previous life, and unreadable for
// what cannot be read. One may come twice.
func (r *Restorer) PreviousReturns(ctx context.Context, sale string, unreadable func(what, text string), yield func(PreviousReturn) error) error {
	return r.scanPrevious(ctx, sale, shard.ReturnsKey, func(field, text string) error {
		id, returnID, ok := strings.Cut(field, "|")
		words, _, told := strings.Cut(text, "\t")
		flag, words, _ := strings.Cut(words, " ")
		lines, err := record.ParseUnits(words)
		if !ok || !told || err != nil {
			unreadable("return "+field, text)
			return nil
		}
		return yield(PreviousReturn{id, returnID, flag == "1", lines})
	})
}

// DropPrevious deletes the previous life: a reservation without a record now is then
// unknown.
func (r *Restorer) DropPrevious(ctx context.Context, sale string) error {
	if err := r.shard.Previous(sale).Drop(ctx); err != nil {
		return err
	}
	return r.shard.EndMerging(ctx, sale)
}

// RecordOf reads a reservation's record as it is kept; nil: there is none.
func (r *Restorer) RecordOf(ctx context.Context, sale, id string) (*record.Record, error) {
	return recordIn(ctx, r.shard.Data(sale), id)
}

// MergeReturn repeats a return of the previous life, under its id. It does nothing if the
// return was made already, or if its reservation has no record in either life.
func (s *Restorer) MergeReturn(ctx context.Context, id string, r PreviousReturn, by string) (made bool, err error) {
	field := r.Reservation + "|" + r.ID
	known, err := s.shard.Data(id).Has(ctx, shard.ReturnsKey, field)
	if err != nil || known {
		return false, err
	}
	now, err := s.RecordOf(ctx, id, r.Reservation)
	if err != nil {
		return false, err
	}
	was, err := s.PreviousRecord(ctx, id, r.Reservation)
	if err != nil || now == nil || was == nil {
		return false, err
	}
	restock, merged := 0, 0
	if r.Restock {
		restock = 1
	}
	if now.Charges == was.Charges { // it was merged, and has the charges that it had at the end
		merged = 1
	}
	args := []any{r.Reservation, r.ID, restock, by, len(r.Lines)}
	for _, l := range r.Lines {
		args = append(args, l.Cell, l.Units)
	}
	args = append(args, merged)
	_, err = s.store.Resolve(ctx, id, shard.Op(lua.Return, args...))
	return err == nil, err
}

// HasAdjustment reports whether an adjustment was made under an id.
func (r *Restorer) HasAdjustment(ctx context.Context, sale, id string) (bool, error) {
	return r.shard.Data(sale).Has(ctx, shard.AdjustmentsKey, id)
}

func recordIn(ctx context.Context, d shard.Data, id string) (*record.Record, error) {
	found, err := d.Values(ctx, shard.RecordsKey, id)
	if err != nil || !found.Has(0) {
		return nil, err
	}
	return record.Parse(found.Text(0))
}
