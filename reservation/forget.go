package reservation

import (
	"context"
	"time"
)

const (
	// EndedFor is how long Redis keeps the record of a reservation that was released before its
	// deadline: by the shop's own word, because it was never sent, or by force. It begins when the
	// reservation has ended and its token has expired too, so it is for what is still
	// under way, like that of tombstones.
	EndedFor = time.Hour
	// OverdueFor is how long it keeps one that has expired, or was released after its deadline:
	// the shop may have sold it, and may yet say so.
	OverdueFor = 7 * 24 * time.Hour
	// unheardLedger is for how long a ledger that says nothing keeps records that it has not got.
	unheardLedger = 7 * 24 * time.Hour
	// forgetAtOnce is about how many records one script call looks at.
	forgetAtOnce = 250
)

// Over says that nothing refers to a reservation any more: that it has ended without an order,
// and long enough ago at a time by Redis's clock. Redis may have forgotten it then.
func (r *RecordFields) Over(now time.Time) bool {
	if r.State != Released && r.State != Expired {
		return false
	}
	last, age := r.Changed, OverdueFor
	if r.Changed.Before(r.Deadline) {
		age = EndedFor
	}
	for _, at := range []time.Time{r.Deadline, r.Exp} {
		if at.After(last) {
			last = at
		}
	}
	return !now.Before(last.Add(age))
}

// Forgotten is what one call of Forget has done: it has looked at so many records, and
// dropped some of them. Next is where to go on; "0": all have been looked at.
type Forgotten struct {
	Next            string
	Looked, Dropped int
}

// Forget drops the records of reservations that are over, from one part of a sale's records,
// unless a ledger does not have their end yet. It begins with cursor "0" and goes on with
// the Next of the last call.
func (s *Store) Forget(ctx context.Context, sale, cursor string) (Forgotten, error) {
	replies, err := s.run(ctx, s.scripts.Settle, sale, forgetting(cursor, forgetAtOnce))
	if err != nil {
		return Forgotten{Next: cursor}, err
	}
	r := replies[0]
	return Forgotten{r.word(1), int(r.number(2)), int(r.number(3))}, nil
}

func forgetting(cursor string, most int) operation {
	return operation{"forget", []any{cursor, most, EndedFor.Milliseconds(), OverdueFor.Milliseconds(), unheardLedger.Milliseconds()}}
}
