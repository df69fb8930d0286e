package reservation

import (
	"context"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// RunPromised runs operations of one script on a sale in one call, which no others share, and keeps what Redis has
// promised with them.
func (s *Store) RunPromised(ctx context.Context, sale string, ops ...shard.Operation) ([]shard.Reply, error) {
	replies, seq, err := s.shard.RunWith(ctx, s.shard.Options.ReplicaAcks, sale, ops...)
	if err != nil {
		return nil, err
	}
	promises := s.promises.Load()
	for i, r := range replies {
		call := &Call{Request: request{Op: ops[i]}}
		if promises != nil && isPromise(call, r) {
			(*promises).Promised(sale, seq, promiseOf(call, r))
		}
	}
	return replies, nil
}
