package queue

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// Look returns the state of a sale's line; nil: no order of the sale has come to a queue, and no
// operator has paused one.
func Look(ctx context.Context, s *reservation.Store, sale string) (*State, error) {
	if there, err := s.Shard().Data(sale).Exists(ctx, shard.QueueKey); err != nil || !there {
		return nil, err
	}
	state, err := Show(ctx, s, sale)
	if err != nil {
		return nil, err
	}
	return &state, nil
}

// Keepers returns the edges that ask for turns of a sale, and for how long its pace lets no
// order go. now is the time by the shard's clock.
func Keepers(ctx context.Context, s *reservation.Store, sale string, now time.Time) (edges []string, next time.Duration, err error) {
	d := s.Shard().Data(sale)
	last, err := d.Values(ctx, shard.QueueKey, "next")
	if err != nil {
		return nil, 0, err
	}
	if last.Has(0) {
		next = max(time.UnixMicro(last.Number(0)).Sub(now), 0)
	}
	err = d.Each(ctx, shard.QueueKey, "e|*", 1000, func(name, value string) error {
		edge, _ := strings.CutPrefix(name, "e|")
		if until, err := strconv.ParseInt(value, 10, 64); err == nil && until > now.UnixMilli() {
			edges = append(edges, edge)
		}
		return nil
	})
	slices.Sort(edges)
	return slices.Compact(edges), next, err
}
