package reservation

import (
	"context"
	"time"
)

// Extend lets a hold live until holdFor from now, but not longer than longest after
// it was made; a deadline that is later already stays. It returns the hold's
// deadline, when its token expires, its creation and its epoch. What is not held
// any more is a ConflictError.
func (s *Store) Extend(ctx context.Context, sale, id string, holdFor, longest time.Duration) (Hold, error) {
	r, err := s.resolve(ctx, sale, operation{"extend", []any{id, holdFor.Milliseconds(), longest.Milliseconds()}})
	if err != nil {
		return Hold{}, err
	}
	return Hold{
		ID: id, Sale: sale, State: Held,
		Deadline: time.UnixMilli(r.number(1)), Exp: time.UnixMilli(r.number(2)),
		Epoch: r.number(3), Created: time.UnixMilli(r.number(4)),
	}, nil
}
