package reservation

import (
	"context"
	"strconv"
	"strings"
)

// Carry takes over a reservation that another life of the sale had, as far as its units
// are there; one that is here already is left as it is, but for a hold that was extended
// there. It returns the state that holds.
func (s *Store) Carry(ctx context.Context, sale, id string, f *RecordFields) (state State, carried bool, err error) {
	replies, err := s.runReplicated(ctx, s.scripts.Settle, sale, operation{"carry", []any{id, f.Text()}})
	if err != nil {
		return "", false, err
	}
	return State(replies[0].word(1)), replies[0].number(2) == 1, nil
}

// aside calls yield for every field of what was set aside, a few at a time. One may
// come twice.
func (s *Store) aside(ctx context.Context, sale string, place int, yield func(field, value string) error) error {
	for cursor := uint64(0); ; {
		pairs, next, err := s.redis.HScan(ctx, s.asideKeys(sale)[place], cursor, "", 500).Result()
		if err != nil {
			return explain(err)
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			if err := yield(pairs[i], pairs[i+1]); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// AsideReservations calls yield for every reservation that was set aside, and unreadable
// for what cannot be read. One may come twice.
func (s *Store) AsideReservations(ctx context.Context, sale string, unreadable func(what, text string), yield func(id string, r *RecordFields) error) error {
	return s.aside(ctx, sale, recordsKey, func(id, text string) error {
		r, err := ParseRecord(text)
		if err == nil {
			switch r.State {
			case "tombstone":
				return nil
			case Held, InDoubt, Confirmed, Released, Expired, Unbacked:
				return yield(id, r)
			}
		}
		unreadable("reservation "+id, text)
		return nil
	})
}

// AsideRecord reads the record of a reservation that was set aside; nil: there is none.
func (s *Store) AsideRecord(ctx context.Context, sale, id string) (*RecordFields, error) {
	return s.recordAt(ctx, s.asideKeys(sale)[recordsKey], id)
}

// AsideAdjustments calls yield for every adjustment that was set aside, and unreadable
// for what cannot be read.
func (s *Store) AsideAdjustments(ctx context.Context, sale string, unreadable func(what, text string), yield func(id string, l CellUnits) error) error {
	return s.aside(ctx, sale, adjustmentsKey, func(id, text string) error {
		words := strings.Fields(text)
		if len(words) == 3 {
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
				return yield(id, CellUnits{words[0], n})
			}
		}
		unreadable("adjustment "+id, text)
		return nil
	})
}

// AsideReturn is a return that was set aside.
type AsideReturn struct {
	Reservation, ID string
	Restock         bool
	Lines           []CellUnits
}

// AsideReturns calls yield for every return that was set aside, and unreadable for what
// cannot be read.
func (s *Store) AsideReturns(ctx context.Context, sale string, unreadable func(what, text string), yield func(AsideReturn) error) error {
	return s.aside(ctx, sale, returnsKey, func(field, text string) error {
		id, returnID, ok := strings.Cut(field, "|")
		words, _, told := strings.Cut(text, "\t")
		flag, words, _ := strings.Cut(words, " ")
		lines, err := ParseUnits(words)
		if !ok || !told || err != nil {
			unreadable("return "+field, text)
			return nil
		}
		return yield(AsideReturn{id, returnID, flag == "1", lines})
	})
}

// DropAside drops what was set aside: what has no record now is not known.
func (s *Store) DropAside(ctx context.Context, sale string) error {
	if err := s.redis.Unlink(ctx, s.asideKeys(sale)...).Err(); err != nil {
		return explain(err)
	}
	return explain(s.redis.HDel(ctx, s.shardKeys(sale)[metaKey], "carrying").Err())
}

// RecordOf reads a reservation's record as it is kept; nil: there is none.
func (s *Store) RecordOf(ctx context.Context, sale, id string) (*RecordFields, error) {
	return s.recordAt(ctx, s.shardKeys(sale)[recordsKey], id)
}

// CarryReturn makes a return of another life of the sale again, under its id, unless it
// was made: then nothing happens.
func (s *Store) CarryReturn(ctx context.Context, id string, r AsideReturn, by string) (made bool, err error) {
	field := r.Reservation + "|" + r.ID
	known, err := s.redis.HExists(ctx, s.shardKeys(id)[returnsKey], field).Result()
	if err != nil || known {
		return false, explain(err)
	}
	now, err := s.RecordOf(ctx, id, r.Reservation)
	if err != nil {
		return false, err
	}
	was, err := s.AsideRecord(ctx, id, r.Reservation)
	if err != nil || now == nil || was == nil {
		return false, err
	}
	restock, carried := 0, 0
	if r.Restock {
		restock = 1
	}
	if now.Charges == was.Charges { // it was carried over, and costs as much as in the end
		carried = 1
	}
	args := []any{r.Reservation, r.ID, restock, by, len(r.Lines)}
	for _, l := range r.Lines {
		args = append(args, l.Cell, l.Units)
	}
	args = append(args, carried)
	_, err = s.resolve(ctx, id, operation{"return", args})
	return err == nil, err
}

// HasAdjustment says whether an adjustment was made under an id.
func (s *Store) HasAdjustment(ctx context.Context, sale, id string) (bool, error) {
	ok, err := s.redis.HExists(ctx, s.shardKeys(sale)[adjustmentsKey], id).Result()
	return ok, explain(err)
}

func (s *Store) recordAt(ctx context.Context, key, id string) (*RecordFields, error) {
	v, err := s.redis.HMGet(ctx, key, id).Result()
	if err != nil {
		return nil, explain(err)
	}
	text, ok := v[0].(string)
	if !ok {
		return nil, nil
	}
	return ParseRecord(text)
}
