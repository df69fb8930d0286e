package reservation

import (
	"context"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/shard"
	"time"
)

const (
	// unheardLedger is for how long a ledger that says nothing keeps records that it has not got.
	unheardLedger = 7 * 24 * time.Hour
	// forgetAtOnce is about how many records one script call looks at.
	forgetAtOnce = 250
)

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
	replies, err := s.shard.Run(ctx, s.shard.Scripts.Settle, sale, forgetting(cursor, forgetAtOnce))
	if err != nil {
		return Forgotten{Next: cursor}, err
	}
	r := replies[0]
	return Forgotten{r.Text(1), int(r.Number(2)), int(r.Number(3))}, nil
}

func forgetting(cursor string, most int) shard.Operation {
	return shard.Op("forget", cursor, most, record.EndedFor.Milliseconds(), record.OverdueFor.Milliseconds(), unheardLedger.Milliseconds())
}
