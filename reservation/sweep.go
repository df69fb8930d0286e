package reservation

import (
	"context"
	"github.com/stockgate/stockgate/shard"
)

// sweepAtOnce is about how many counters one script call looks at.
const sweepAtOnce = 1000

// Sweep drops the counters of purchase limits whose window is over, from one part
// of a sale's counters. It begins with cursor "0", goes on with the one returned,
// and is through when that is "0" again. It returns how many it dropped.
func (s *Store) Sweep(ctx context.Context, sale, cursor string) (next string, dropped int, err error) {
	replies, err := s.shard.Run(ctx, s.shard.Scripts.Settle, sale, shard.Op("sweep", cursor, sweepAtOnce))
	if err != nil {
		return cursor, 0, err
	}
	return replies[0].Text(1), int(replies[0].Number(2)), nil
}
