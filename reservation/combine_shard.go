package reservation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// do runs one operation on a sale, together with those of others. It returns the
// shard's seq after the call.
func (s *Store) do(ctx context.Context, sale string, op operation) (reply, int64, error) {
	return s.calls.do(ctx, sale, ticketFor(op))
}

func ticketFor(op operation) *ticket {
	return &ticket{op: op, weight: 1 + len(op.args)/3, settles: op.name != "lookup"}
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
	case s.options.ReplicaAcks > 0:
		s.allTogether(ctx, sale, claims, others)
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
	c := s.clock(sale)
	if _, known := c.now(); (!known || c.broken.Load()) && hasClaim(batch) {
		if err := s.reach(ctx, sale); err != nil {
			return batch, fmt.Errorf("%w (%w)", err, ErrNotSent)
		}
	}
	out := batch[:0]
	for _, t := range batch {
		if t.claim == nil {
			out = append(out, t)
			continue
		}
		now, _ := c.now()
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

// reach makes a call without operations, where claims go. It tells the time of the shard's
// server. After a connection has broken it also tells whether there is one again: each
// claim that is sent in vain leaves a release to be told later.
func (s *Store) reach(ctx context.Context, sale string) error {
	before := s.clock(sale).mark()
	raw, err := s.eval(ctx, s.claims, s.scripts.Settle, s.shardKeys(sale), s.operationArgs(sale, nil), 0)
	_, _, err = s.replies(sale, before, raw, 0, err)
	return err
}

func hasClaim(batch []*ticket) bool {
	return slices.ContainsFunc(batch, func(t *ticket) bool { return t.claim != nil })
}

// claimTogether makes claims in one call, if that is possible.
func (s *Store) claimTogether(ctx context.Context, sale string, batch []*ticket) {
	if len(batch) == 0 {
		return
	}
	replies, seq, err := s.reserveAt(ctx, sale, claimsOf(batch))
	answerEach(batch, replies, seq, err, func(half []*ticket) { s.claimTogether(ctx, sale, half) })
}

// runTogether runs operations that are no claims in one call, if that is possible.
func (s *Store) runTogether(ctx context.Context, sale string, batch []*ticket) {
	replies, seq, err := s.runWith(ctx, s.options.ReplicaAcks, s.scripts.Settle, sale, operationsOf(batch)...)
	answerEach(batch, replies, seq, err, func(half []*ticket) { s.runTogether(ctx, sale, half) })
}

// allTogether makes claims, and runs what else there is, on one connection, so that both
// wait for the replicas once.
func (s *Store) allTogether(ctx context.Context, sale string, claims, others []*ticket) {
	keys, before := s.shardKeys(sale), s.clock(sale).mark()
	done := s.evalReplicated(ctx, s.redis, s.options.ReplicaAcks,
		scriptCall{s.scripts.Claim, keys, reserveArgs(claimsOf(claims))},
		scriptCall{s.scripts.Settle, keys, s.operationArgs(sale, operationsOf(others))})
	finish := func(batch []*ticket, e evaluated, again func([]*ticket)) {
		if redis.HasErrorPrefix(e.err, "NOSCRIPT") { // it did not run: alone it is loaded first
			again(batch)
			return
		}
		replies, seq, err := s.replies(sale, before, e.raw, len(batch), explain(e.err))
		answerEach(batch, replies, seq, err, again)
	}
	finish(claims, done[0], func(some []*ticket) { s.claimTogether(ctx, sale, some) })
	finish(others, done[1], func(some []*ticket) { s.runTogether(ctx, sale, some) })
}

func claimsOf(batch []*ticket) []*claiming {
	claims := make([]*claiming, len(batch))
	for i, t := range batch {
		claims[i] = t.claim
	}
	return claims
}

func operationsOf(batch []*ticket) []operation {
	ops := make([]operation, len(batch))
	for i, t := range batch {
		ops[i] = t.op
	}
	return ops
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
