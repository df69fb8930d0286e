package reservation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
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
	stored, err := s.shard.AddAnswerBytes(ctx, sale, size)
	if err != nil {
		return err
	}
	if stored > maxAnswers {
		if _, err := s.shard.AddAnswerBytes(ctx, sale, -size); err != nil {
			return err
		}
		return fmt.Errorf("%w: the sale has %d bytes of answers", ErrAnswerTooLarge, stored-size)
	}
	return s.shard.StoreAnswer(ctx, sale, id, packed, ttl)
}

// StoredAnswer returns the stored answer to a reservation's request; nil: none is stored.
func (s *Store) StoredAnswer(ctx context.Context, sale, id string) (*StoredAnswer, error) {
	packed, err := s.shard.StoredAnswer(ctx, sale, id)
	if packed == nil || err != nil {
		return nil, err
	}
	a := new(StoredAnswer)
	if err := json.Unmarshal(packed, a); err != nil {
		return nil, fmt.Errorf("the stored answer of reservation %s cannot be read: %w", id, err)
	}
	return a, nil
}
