package queue

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/shard"
)

// Look returns the state of a sale's line; nil: no order of the sale has come to a queue, and no
// operator has paused one.
func Look(ctx context.Context, s *reservation.Store, sale string) (*State, error) {
	c := s.Shard()
	n, err := c.Redis.Exists(ctx, c.ShardKeys(sale)[shard.QueueKey]).Result()
	if err != nil {
		return nil, shard.Explain(err)
	}
	if n == 0 {
		return nil, nil
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
	c := s.Shard()
	key := c.ShardKeys(sale)[shard.QueueKey]
	text, err := c.Redis.HMGet(ctx, key, "next").Result()
	if err != nil {
		return nil, 0, shard.Explain(err)
	}
	if word, ok := text[0].(string); ok {
		us, _ := strconv.ParseInt(word, 10, 64)
		next = max(time.UnixMicro(us).Sub(now), 0)
	}
	all := c.Redis.HScan(ctx, key, 0, "e|*", 1000).Iterator()
	for all.Next(ctx) {
		edge, _ := strings.CutPrefix(all.Val(), "e|")
		if !all.Next(ctx) {
			break
		}
		if until, err := strconv.ParseInt(all.Val(), 10, 64); err == nil && until > now.UnixMilli() {
			edges = append(edges, edge)
		}
	}
	slices.Sort(edges)
	return slices.Compact(edges), next, shard.Explain(all.Err())
}
