package reservation

import (
	"context"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/shard"
	"time"
)

// Extend lets a hold live until holdFor from now, but not longer than longest after
// it was made; a deadline that is later already stays. It returns the hold's
// deadline, when its token expires, its creation and its epoch. What is not held
// any more is a ConflictError.
func (s *Store) Extend(ctx context.Context, sale, id string, holdFor, longest time.Duration) (Hold, error) {
	r, err := s.Resolve(ctx, sale, shard.Op("extend", id, holdFor.Milliseconds(), longest.Milliseconds()))
	if err != nil {
		return Hold{}, err
	}
	return Hold{
		ID: id, Sale: sale, State: record.Held,
		Deadline: time.UnixMilli(r.Number(1)), Exp: time.UnixMilli(r.Number(2)),
		Epoch: r.Number(3), Created: time.UnixMilli(r.Number(4)),
	}, nil
}
