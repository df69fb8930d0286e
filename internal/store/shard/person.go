package shard

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// KeptAnswer is an answer of the shop that Redis keeps for the client of a reservation.
type KeptAnswer struct {
	// Bytes are 0 where none is kept.
	Bytes int64
	// For is how long it is kept from now on.
	For time.Duration
}

// KeptAnswers tells for each reservation of a sale which answers are kept: under its idempotency key, and for
// an order that has waited in a queue.
func (s *Client) KeptAnswers(ctx context.Context, sale string, ids []string) (keyed, queued []KeptAnswer, err error) {
	pipe := behind(s.redis).Pipeline() // not MULTI: a full Redis refuses it
	sizes, times := make([]*redis.IntCmd, 2*len(ids)), make([]*redis.DurationCmd, 2*len(ids))
	for i, id := range ids {
		for j, key := range []string{s.AnswerKey(sale, id), s.QueueAnswerKey(sale, id)} {
			sizes[2*i+j], times[2*i+j] = pipe.StrLen(ctx, key), pipe.PTTL(ctx, key)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, Explain(err)
	}
	at := func(i int) KeptAnswer { return KeptAnswer{sizes[i].Val(), max(times[i].Val(), 0)} }
	for i := range ids {
		keyed, queued = append(keyed, at(2*i)), append(queued, at(2*i+1))
	}
	return keyed, queued, nil
}

// DropAnswer drops the stored answer to a reservation's request, and reports whether there was one. The bytes that
// were ever stored stay counted.
func (s *Client) DropAnswer(ctx context.Context, sale, id string) (bool, error) {
	n, err := behind(s.redis).Unlink(ctx, s.AnswerKey(sale, id)).Result()
	return n > 0, Explain(err)
}

// ShadowNames counts the counters of dry runs whose names match a pattern.
func (s *Client) ShadowNames(ctx context.Context, sale, pattern string) (n int, err error) {
	for cursor := uint64(0); ; {
		page, next, err := behind(s.redis).HScan(ctx, s.ShadowKey(sale), cursor, pattern, 500).Result()
		if err != nil {
			return n, Explain(err)
		}
		n += len(page) / 2
		if cursor = next; cursor == 0 {
			return n, nil
		}
	}
}
