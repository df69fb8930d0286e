package shard

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// NotSent says that an operation certainly did nothing: there was no connection for it in time,
// Redis refused to begin, a key has another type, or the script touched nothing: it found a newer
// schema, or a sale that is being restored. A cluster client repeats calls on its own, so there the
// last error says nothing about earlier tries.
func (s *Client) NotSent(err error) bool {
	if errors.Is(err, ErrNotSent) || s.Options.Cluster {
		return errors.Is(err, ErrNotSent)
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) || neverBegan(err) || isWrongType(err) ||
		errors.Is(err, ErrNewerSchema) || errors.Is(err, ErrRestoring) ||
		// a wait for the pool: a wait for a reply ends with an error of the network
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Repeatable reports whether another try with the same id makes sense: the connection broke, and
// there is time left.
func Repeatable(ctx context.Context, err error) bool {
	var timeout net.Error
	if ctx.Err() != nil || !errors.Is(err, ErrUnavailable) || errors.As(err, &timeout) && timeout.Timeout() {
		return false
	}
	deadline, _ := ctx.Deadline()
	return time.Until(deadline) > 10*time.Millisecond && BrokenConnection(err)
}
