package reservation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// fromBackup begins what lua/status.lua notes of a sale that comes from a backup.
const fromBackup = "backup "

// behindText reads what lua/status.lua notes; zero: the sale does not come from a backup.
func behindText(text string) time.Time {
	ms, err := strconv.ParseInt(strings.TrimPrefix(text, fromBackup), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// MarkRestored pauses a sale that comes from a backup of that time, if it was open, and notes that in the sale until its
// status changes: what was sold since looks available. The sale begins a new epoch, because the next numbers of its journal
// have been others' since; to mark it again changes nothing. It returns the status that the sale had. by is for the journal.
func (s *Store) MarkRestored(ctx context.Context, id string, backup time.Time, by string) (sale.Status, error) {
	current, err := s.Load(ctx, id)
	if err != nil {
		return "", err
	}
	next := current.Status
	if next == sale.Open {
		next = sale.Paused
	}
	replies, err := s.shard.RunReplicated(ctx, id, shard.Op(lua.Status, string(next), by, "", fromBackup+strconv.FormatInt(backup.UnixMilli(), 10)))
	if err != nil {
		return "", err
	}
	if code := replies[0].Code(); code != lua.OK {
		return "", fmt.Errorf("%w: status gave %q", shard.ErrUnavailable, code)
	}
	return current.Status, nil
}
