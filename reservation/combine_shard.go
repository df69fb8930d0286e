package reservation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// do runs one operation on a sale, together with those of others. It returns the
// shard's seq after the call.
func (s *Store) do(ctx context.Context, sale string, op operation) (reply, int64, error) {
	return s.calls.do(ctx, sale, &ticket{op: op, weight: 1 + len(op.args)/3, settles: op.name != "lookup"})
}

// sendOperations runs operations on one sale: those that make claims in one call of a
// script, what else there is in another one at the same time.
func (s *Store) sendOperations(sale string, batch []*ticket) {
	ctx, cancel := context.WithDeadline(context.Background(), s.callUntil(batch))
	defer cancel()
	batch, err := s.setTimes(ctx, sale, batch)
	if err != nil {
		answerAll(batch, err)
		return
	}
	claims, others := apart(batch)
	switch {
	case len(others) == 0:
		s.claimTogether(ctx, sale, claims)
	case len(claims) == 0:
		s.runTogether(ctx, sale, others)
	default:
		// each answers its own, whatever becomes of the other
		var claiming sync.WaitGroup
		claiming.Go(func() { safely(claims, func() { s.claimTogether(ctx, sale, claims) }) })
		safely(others, func() { s.runTogether(ctx, sale, others) })
		claiming.Wait()
	}
}

// apart separates claims from what else there is.
func apart(batch []*ticket) (claims, others []*ticket) {
	n := 0
	for _, t := range batch {
		if t.claim != nil {
			n++
		}
	}
	switch n {
	case 0:
		return nil, batch
	case len(batch):
		return batch, nil
	}
	claims, others = make([]*ticket, 0, n), make([]*ticket, 0, len(batch)-n)
	for _, t := range batch {
		if t.claim != nil {
			claims = append(claims, t)
		} else {
			others = append(others, t)
		}
	}
	return claims, others
}

func answerAll(batch []*ticket, err error) {
	for _, t := range batch {
		t.answer(nil, 0, err)
	}
}

// callUntil is when a call must have its answer: as long as anybody waits, but not so
// long that others would wait in vain behind a connection that is dead.
func (s *Store) callUntil(batch []*ticket) time.Time {
	longest := time.Now().Add(2 * s.options.Timeout)
	var latest time.Time
	for _, t := range batch {
		until, ok := t.ctx.Deadline()
		if !ok || until.After(longest) {
			return longest
		}
		if until.After(latest) {
			latest = until
		}
	}
	return latest
}

// setTimes tells each reserve until when it may run, in Redis's own time, and returns
// the batch without those whose time is up. The error means that nothing was sent.
func (s *Store) setTimes(ctx context.Context, sale string, batch []*ticket) ([]*ticket, error) {
	out := batch[:0]
	for i, t := range batch {
		if t.claim == nil {
			out = append(out, t)
			continue
		}
		now, known := s.clock(sale).now()
		if !known {
			// a call without operations tells the time of the shard's server
			if _, err := s.run(ctx, s.scripts.Settle, sale); err != nil {
				return append(out, batch[i:]...), fmt.Errorf("%w (%w)", err, ErrNotSent)
			}
			now, _ = s.clock(sale).now()
		}
		until, ok := t.ctx.Deadline()
		if !ok {
			until = time.Now().Add(s.options.Timeout)
		}
		left := time.Until(until)
		if left <= 0 {
			t.answer(nil, 0, errNoTime)
			continue
		}
		t.claim.notAfter = now + left.Milliseconds()
		out = append(out, t)
	}
	return out, nil
}

// claimTogether makes claims in one call, if that is possible.
func (s *Store) claimTogether(ctx context.Context, sale string, batch []*ticket) {
	if len(batch) == 0 {
		return
	}
	claims := make([]*claiming, len(batch))
	for i, t := range batch {
		claims[i] = t.claim
	}
	replies, seq, err := s.reserveAt(ctx, sale, claims)
	answerEach(batch, replies, seq, err, func(half []*ticket) { s.claimTogether(ctx, sale, half) })
}

// runTogether runs operations that are no claims in one call, if that is possible.
func (s *Store) runTogether(ctx context.Context, sale string, batch []*ticket) {
	ops := make([]operation, len(batch))
	for i, t := range batch {
		ops[i] = t.op
	}
	replies, seq, err := s.runAt(ctx, s.scripts.Settle, sale, ops...)
	answerEach(batch, replies, seq, err, func(half []*ticket) { s.runTogether(ctx, sale, half) })
}

// answerEach says what came of a call. What cannot be done by one of a batch does not
// keep the others from being done: again runs each half of it.
func answerEach(batch []*ticket, replies []reply, seq int64, err error, again func([]*ticket)) {
	switch {
	case err == nil:
		for i, t := range batch {
			t.answer(replies[i], seq, nil)
		}
	case len(batch) > 1 && scriptFailed(err):
		// something that belongs to one of them is not as it should be
		half := len(batch) / 2
		again(batch[:half])
		again(batch[half:])
	default:
		answerAll(batch, err)
	}
}

// scriptFailed says that a script ended with an error of its own, before it wrote.
func scriptFailed(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && !neverBegan(err) && strings.Contains(said.Error(), "script") && !strings.HasPrefix(said.Error(), "BUSY")
}
