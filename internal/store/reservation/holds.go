package reservation

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// HoldFilter selects reservations of a sale.
type HoldFilter struct {
	// State is Held, InDoubt or Unbacked.
	State record.State
	// Cause is the cause in the record; empty: any.
	Cause string
	// Older is the minimum time that a reservation has been in this state, by Redis's
	// time. Default: 0, any.
	Older time.Duration
}

// takes reports whether the filter selects a reservation. now is an estimate, and may be
// before the last changes.
func (f *HoldFilter) takes(r *Record, now time.Time) bool {
	return r.State == f.State && (f.Cause == "" || r.Cause == f.Cause) && (f.Older == 0 || now.Sub(r.Changed) >= f.Older)
}

const (
	// holdsPage is how many reservations are read at a time.
	holdsPage = 500
	// holdsLook bounds the reservations that one call reads, selected or not.
	holdsLook = 20_000
)

// HoldsAfter lists up to limit reservations that a filter selects, the oldest first. after
// is empty at first, then the next of the last call; next is empty when there are no more.
// Until then a call may return fewer than limit, even none. Reservations that are settled
// meanwhile do not make it skip others. It fails with ErrCursor if after is invalid.
func (s *Store) HoldsAfter(ctx context.Context, sale string, f HoldFilter, after string, limit int) (found []Record, next string, err error) {
	place, err := holdsPlace(f.State)
	if err != nil {
		return nil, "", err
	}
	at, err := parseHoldCursor(after)
	if err != nil {
		return nil, "", err
	}
	for looked, page := 0, holdsPage; looked < holdsLook; {
		ids, more, err := s.holdIDs(ctx, sale, place, at, page)
		if err != nil {
			return nil, "", err
		}
		if len(ids) == 0 && more { // a whole page has the same millisecond
			page *= 2
			continue
		}
		looked += len(ids)
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = id.Member
		}
		records, err := s.records(ctx, sale, names)
		if err != nil {
			return nil, "", err
		}
		byID := make(map[string]*Record, len(records))
		for i := range records {
			byID[records[i].ID] = &records[i]
		}
		now := s.Now(sale)
		for _, id := range ids {
			at = holdCursor{score: id.Score, id: id.Member, set: true}
			if r := byID[at.id]; r != nil && f.takes(r, now) {
				if found = append(found, *r); len(found) == limit {
					return found, at.String(), nil
				}
			}
		}
		if !more {
			return found, "", nil
		}
	}
	return found, at.String(), nil
}

// CountHolds returns how many reservations of a sale are held, in doubt or unbacked.
func (s *Store) CountHolds(ctx context.Context, sale string, state record.State) (int64, error) {
	place, err := holdsPlace(state)
	if err != nil {
		return 0, err
	}
	return s.shard.Data(sale).Count(ctx, place)
}

func holdsPlace(state record.State) (int, error) {
	places := map[record.State]int{record.Held: shard.DeadlinesKey, record.InDoubt: shard.InDoubtKey, record.Unbacked: shard.UnbackedKey}
	place, ok := places[state]
	if !ok {
		return 0, shard.Refused("state %q cannot be listed; ask for held, in_doubt or unbacked", state)
	}
	return place, nil
}

// holdIDs reads at most so many members of a sorted set, and leaves out those up to the
// cursor. more: there may be others after them.
func (s *Store) holdIDs(ctx context.Context, sale string, place int, at holdCursor, most int) (ids []shard.Scored, more bool, err error) {
	var from *int64
	if at.set {
		from = &at.score
	}
	if ids, err = s.shard.Data(sale).From(ctx, place, from, most); err != nil {
		return nil, false, err
	}
	more = len(ids) == most
	for len(ids) > 0 && at.set && ids[0].Score == at.score && ids[0].Member <= at.id {
		ids = ids[1:] // Redis orders equal scores by the bytes of their members
	}
	return ids, more, nil
}

// Now returns an estimate of the time of a sale's Redis.
func (s *Store) Now(sale string) time.Time {
	if ms, ok := s.shard.Clock(sale).Now(); ok {
		return time.UnixMilli(ms)
	}
	return time.Now()
}

// holdCursor is a position in a list of holds: a score, and an id with this score.
type holdCursor struct {
	score int64
	id    string
	set   bool
}

func (c holdCursor) String() string { return strconv.FormatInt(c.score, 10) + ":" + c.id }

// ErrCursor says that a cursor is not a position in a list of holds.
var ErrCursor = errors.New("after is not what an earlier answer gave as next")

func parseHoldCursor(text string) (holdCursor, error) {
	if text == "" {
		return holdCursor{}, nil
	}
	score, id, ok := strings.Cut(text, ":")
	n, err := strconv.ParseInt(score, 10, 64)
	if !ok || err != nil || id == "" {
		return holdCursor{}, ErrCursor
	}
	return holdCursor{n, id, true}, nil
}
