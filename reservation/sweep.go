package reservation

import (
	"context"
	"github.com/stockgate/stockgate/shard"
)

// sweepAtOnce is about how many counters one script call reads.
const sweepAtOnce = 1000

// Sweep reads one part of a sale's counters of purchase limits, and drops those whose
// window is over. Begin with cursor "0", and go on with next until it is "0" again. It
// returns how many counters it dropped.
func (s *Store) Sweep(ctx context.Context, sale, cursor string) (next string, dropped int, err error) {
	replies, err := s.shard.Run(ctx, s.shard.Scripts.Settle, sale, shard.Op("sweep", cursor, sweepAtOnce))
	if err != nil {
		return cursor, 0, err
	}
	return replies[0].Text(1), int(replies[0].Number(2)), nil
}
