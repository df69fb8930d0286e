package reservation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stockgate/stockgate/shard"
)

// Bounds of the stored answers of the shop.
const (
	MaxAnswer  = 4 << 10  // bytes of one body
	maxAnswers = 64 << 20 // bytes stored for one sale, in total
)

// StoredAnswer is the shop's answer to a confirmed request, kept so that a retry under
// the same idempotency key gets the same answer.
type StoredAnswer struct {
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	Location    string `json:"location,omitempty"`
	Body        []byte `json:"body,omitempty"`
}

// ErrAnswerTooLarge says that the answer was not stored: it exceeds MaxAnswer, or the
// answers of its sale exceed maxAnswers.
var ErrAnswerTooLarge = errors.New("the answer is not stored: it is too large, or those of this sale are")

// StoreAnswer stores the shop's answer to a reservation's request for ttl. An answer that
// is stored already stays. It fails with ErrAnswerTooLarge at the bounds, and with the
// error of Redis if Redis is full.
func (s *Store) StoreAnswer(ctx context.Context, sale, id string, a *StoredAnswer, ttl time.Duration) error {
	if len(a.Body) > MaxAnswer {
		return fmt.Errorf("%w: its body has %d bytes", ErrAnswerTooLarge, len(a.Body))
	}
	packed, err := json.Marshal(a)
	if err != nil {
		return err
	}
	// count first: if the next call is lost, no more is stored than counted
	size := int64(len(packed))
	stored, err := s.shard.Redis.IncrBy(ctx, s.shard.AnswersKey(sale), size).Result()
	if err != nil {
		return shard.Explain(err)
	}
	if stored > maxAnswers {
		if err := s.shard.Redis.DecrBy(ctx, s.shard.AnswersKey(sale), size).Err(); err != nil {
			return shard.Explain(err)
		}
		return fmt.Errorf("%w: the sale has %d bytes of answers", ErrAnswerTooLarge, stored-size)
	}
	return shard.Explain(s.shard.Redis.SetNX(ctx, s.shard.AnswerKey(sale, id), packed, ttl).Err())
}

// StoredAnswer returns the stored answer to a reservation's request; nil: none is stored.
func (s *Store) StoredAnswer(ctx context.Context, sale, id string) (*StoredAnswer, error) {
	packed, err := s.shard.Redis.Get(ctx, s.shard.AnswerKey(sale, id)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	} else if err != nil {
		return nil, shard.Explain(err)
	}
	a := new(StoredAnswer)
	if err := json.Unmarshal(packed, a); err != nil {
		return nil, fmt.Errorf("the stored answer of reservation %s cannot be read: %w", id, err)
	}
	return a, nil
}
