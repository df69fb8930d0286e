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

// What lua/status.lua notes of a sale that may lack what was sold begins with one of these, and ends with a time in ms.
const (
	fromBackup   = "backup "
	lossAccepted = "loss "
	afterBypass  = "bypass "
)

// behindTime reads what lua/status.lua notes; zero: it is of another kind.
func behindTime(text, kind string) time.Time {
	digits, ok := strings.CutPrefix(text, kind)
	ms, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// MarkRestored pauses a sale that comes from a backup of that time, if it was open, and notes that in the sale until its
// status changes: what was sold since looks available. The sale begins a new epoch, because the next numbers of its journal
// have been others' since; to mark it again changes nothing. It returns the status that the sale had. by is for the journal.
func (s *Store) MarkRestored(ctx context.Context, id string, backup time.Time, by string) (sale.Status, error) {
	return s.markBehind(ctx, id, fromBackup, backup, by)
}

// MarkLoss does the same with a sale whose Redis goes on without what its disk has lost, as an operator decided then.
func (s *Store) MarkLoss(ctx context.Context, id string, accepted time.Time, by string) (sale.Status, error) {
	return s.markBehind(ctx, id, lossAccepted, accepted, by)
}

// MarkBypassed pauses a sale if it is open, because until that time the shop sold without reservations, which Redis does not
// know. It notes that in the sale until its status changes, and in the journal. A draft and a closed sale stay as they are.
func (s *Store) MarkBypassed(ctx context.Context, id string, until time.Time, by string) (sale.Status, error) {
	return s.markBehind(ctx, id, afterBypass, until, by)
}

func (s *Store) markBehind(ctx context.Context, id, kind string, at time.Time, by string) (sale.Status, error) {
	current, err := s.Load(ctx, id)
	if err != nil {
		return "", err
	}
	next := current.Status
	switch {
	case next == sale.Open:
		next = sale.Paused
	case kind == afterBypass && next != sale.Paused:
		return next, nil
	}
	replies, err := s.shard.RunReplicated(ctx, id, shard.Op(lua.Status, string(next), by, "", kind+strconv.FormatInt(at.UnixMilli(), 10)))
	if err != nil {
		return "", err
	}
	if code := replies[0].Code(); code != lua.OK {
		return "", fmt.Errorf("%w: status gave %q", shard.ErrUnavailable, code)
	}
	return current.Status, nil
}
