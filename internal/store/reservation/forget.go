package reservation

import (
	"context"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

const (
	// unheardLedger is how long a silent ledger keeps Redis from dropping records that the
	// ledger lacks.
	unheardLedger = 7 * 24 * time.Hour
	// forgetAtOnce is about how many records one script call reads.
	forgetAtOnce = 250
)

// Forgotten is what one call of Forget has done: how many records it has read and dropped.
// Next is the cursor of the next call; "0": all have been read.
type Forgotten struct {
	Next            string
	Looked, Dropped int
}

// Forget reads one part of a sale's records, and drops those of reservations that are over,
// unless a ledger does not have their end yet. Begin with cursor "0", and go on with the
// Next of the last call.
func (s *Store) Forget(ctx context.Context, sale, cursor string) (Forgotten, error) {
	replies, err := s.shard.Run(ctx, sale, forgetting(cursor, forgetAtOnce))
	if err != nil {
		return Forgotten{Next: cursor}, err
	}
	r := replies[0]
	return Forgotten{r.Text(1), int(r.Number(2)), int(r.Number(3))}, nil
}

func forgetting(cursor string, most int) shard.Operation {
	return shard.Op(lua.Forget, cursor, most, record.EndedFor.Milliseconds(), record.OverdueFor.Milliseconds(), unheardLedger.Milliseconds())
}

// sweepAtOnce is about how many counters one script call reads.
const sweepAtOnce = 1000

// Sweep reads one part of a sale's counters of purchase limits, and drops those whose
// window is over. Begin with cursor "0", and go on with next until it is "0" again. It
// returns how many counters it dropped.
func (s *Store) Sweep(ctx context.Context, sale, cursor string) (next string, dropped int, err error) {
	replies, err := s.shard.Run(ctx, sale, shard.Op(lua.Sweep, cursor, sweepAtOnce))
	if err != nil {
		return cursor, 0, err
	}
	return replies[0].Text(1), int(replies[0].Number(2)), nil
}
