package reservation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// MarkRestored pauses a sale that comes from a backup of that time, if it was open, and notes that in the sale until its
// status changes: what was sold since looks available. It returns the status that the sale had. by is for the
// journal.
func (s *Store) MarkRestored(ctx context.Context, id string, backup time.Time, by string) (sale.Status, error) {
	current, err := s.Load(ctx, id)
	if err != nil {
		return "", err
	}
	next := current.Status
	switch next {
	case sale.Closed:
		return next, nil // it sells nothing any more
	case sale.Open:
		next = sale.Paused
	}
	replies, err := s.shard.RunReplicated(ctx, id, shard.Op(lua.Status, string(next), by, "", strconv.FormatInt(backup.UnixMilli(), 10)))
	if err != nil {
		return "", err
	}
	if code := replies[0].Code(); code != lua.OK {
		return "", fmt.Errorf("%w: status gave %q", shard.ErrUnavailable, code)
	}
	return current.Status, nil
}
