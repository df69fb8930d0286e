package shard

import (
	"errors"
	"fmt"
	"time"
)

// Silence is how long an edge sells without an answer from Redis.
const Silence = 5 * time.Second

// Health is the result of the last check of Redis.
type Health struct {
	Err        error
	LastAnswer time.Time
}

// ReadyAt returns why an edge must not rely on Redis at a time; nil: it may. A Redis that has answered
// before may be unavailable for as long as silence.
func (h *Health) ReadyAt(now time.Time, silence time.Duration) error {
	switch {
	case h.Err != nil && (h.LastAnswer.IsZero() || !errors.Is(h.Err, ErrUnavailable)):
		return h.Err
	case now.Sub(h.LastAnswer) <= silence:
		return nil
	case h.Err != nil:
		return fmt.Errorf("%w (for more than %v)", h.Err, silence)
	}
	return fmt.Errorf("%w: no word for %v", ErrUnavailable, silence)
}
