package reservation

import (
	"context"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/shard"
	"time"
)

// Extend sets a hold's deadline to holdFor from now, but at most to longest after it was
// made; a later deadline stays. It returns the hold's deadline, when its token expires,
// its creation and its epoch. It fails with a *ConflictError if the reservation is no
// longer held.
func (s *Store) Extend(ctx context.Context, sale, id string, holdFor, longest time.Duration) (Hold, error) {
	r, err := s.Resolve(ctx, sale, shard.Op("extend", id, holdFor.Milliseconds(), longest.Milliseconds()))
	if err != nil {
		return Hold{}, err
	}
	return Hold{
		ID: id, Sale: sale, State: record.Held,
		Deadline: r.Time(1), Exp: r.Time(2),
		Epoch: r.Number(3), Created: r.Time(4),
	}, nil
}
