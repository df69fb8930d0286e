package reservation

import (
	"context"
	"fmt"
)

// ReservationIn finds a reservation of one sale, with one call to Redis. It fails with
// ErrNotFound if the sale does not have it.
func (s *Store) ReservationIn(ctx context.Context, sale, id string) (*Record, error) {
	found, err := s.records(ctx, sale, []string{id})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w in sale %s: %s", ErrNotFound, sale, id)
	}
	return &found[0], nil
}
