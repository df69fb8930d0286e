package reservation

import (
	"context"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/sale"
)

// Owed are the counters of unpaid holds that an attempt is in, one for each identity, and
// what refuses it: a hold is unpaid from when it is made until it is confirmed.
type Owed struct {
	// Fields are the counters: kind|identity hash. None: nothing is counted.
	Fields []string
	// AtOnce, Ended and Within are those of the sale, see sale.Unpaid.
	AtOnce, Ended int64
	Within        time.Duration
}

// appendTerms appends what lua/reserve.lua takes of it among the terms.
func (o *Owed) appendTerms(b []byte) []byte {
	b = strconv.AppendInt(b, int64(len(o.Fields)), 10)
	if len(o.Fields) == 0 {
		return b
	}
	for _, n := range [...]int64{o.AtOnce, o.Ended, o.Within.Milliseconds()} {
		b = strconv.AppendInt(append(b, ':'), n, 10)
	}
	return b
}

// owed are the counters of unpaid holds of an attempt, or why it is refused without asking
// Redis. What the sale itself says of unpaid holds needs every identity that it names, as
// purchase limits do; the default counts those that there are.
func owed(l *Listing, who *person, mode Mode) (Owed, *sale.Refusal) {
	u := l.Sale.UnpaidOf(mode == Backend)
	if u == nil {
		return Owed{}, nil
	}
	out := Owed{AtOnce: u.AtOnce, Ended: u.Ended, Within: time.Duration(u.Within)}
	for kind := range u.Per.All {
		identity := who.identity(kind)
		switch {
		case identity != "":
			out.Fields = append(out.Fields, kind+"|"+identity)
		case l.Sale.Unpaid != nil && l.Sale.Missing != sale.SkipMissing:
			return Owed{}, missing(kind)
		}
	}
	return out, nil
}

// lapseAtOnce is about how many counters one script call looks at.
const lapseAtOnce = 1000

// Lapse drops counters of unpaid holds in which nothing counts any more, from one part of a
// sale's counters. It begins with cursor "0", goes on with the one returned, and is through
// when that is "0" again. It returns how many it dropped.
func (s *Store) Lapse(ctx context.Context, sale, cursor string, within time.Duration) (next string, dropped int, err error) {
	replies, err := s.run(ctx, s.scripts.Settle, sale, operation{"lapse", []any{cursor, lapseAtOnce, within.Milliseconds()}})
	if err != nil {
		return cursor, 0, err
	}
	return replies[0].word(1), int(replies[0].number(2)), nil
}
