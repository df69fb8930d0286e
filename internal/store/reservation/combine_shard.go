package reservation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Do runs one operation on a sale, combined with those of other callers. It returns the
// shard's seq after the call.
func (s *Store) Do(ctx context.Context, sale string, op shard.Operation) (shard.Reply, int64, error) {
	a, err := s.Calls.Do(ctx, sale, TicketFor(op))
	return a.Reply, a.Seq, err
}

// request is what one caller asks of a shard: a reserve request or another operation.
type request struct {
	claim *encodedRequest
	// instead says in whose place a claim is made; nil: in none.
	instead instead
	Op      shard.Operation
}

// result is the shard's answer to a request, and its seq after the call.
type result struct {
	Reply shard.Reply
	Seq   int64
	gone  *sale.Refusal // what Recall has said, without asking the shard; nil: it was asked
}

// Call is a request that waits for its answer.
type Call = combine.Ticket[request, result]

// TicketFor makes the call of an operation, for Calls.Ask.
func TicketFor(op shard.Operation) *Call {
	return &Call{Request: request{Op: op}, Weight: 1 + len(op.Args)/3, Settles: op.Settles()}
}

// sendOperations runs operations on one sale: the reserve requests in one call of a
// script, the others in another call at the same time.
func (s *Store) sendOperations(sale string, batch []*Call) {
	ctx, cancel := context.WithDeadline(context.Background(), combine.CallUntil(batch, s.shard.Options.Timeout))
	defer cancel()
	batch = withoutGone(batch)
	if len(batch) == 0 {
		return
	}
	batch, err := s.setTimes(ctx, sale, batch)
	if err != nil {
		combine.FailAll(batch, err)
		return
	}
	claims, others := apart(batch)
	switch {
	case len(others) == 0:
		s.reserveTogether(ctx, sale, s.admitted(ctx, sale, claims))
	case len(claims) == 0:
		s.runTogether(ctx, sale, others)
	case s.shard.Options.ReplicaAcks > 0:
		if claims = s.admitted(ctx, sale, claims); len(claims) == 0 {
			s.runTogether(ctx, sale, others)
			return
		}
		s.allTogether(ctx, sale, claims, others)
	default:
		// each call answers its own requests, even if the other one fails
		var claiming sync.WaitGroup
		claiming.Go(func() { combine.Safely(claims, func() { s.reserveTogether(ctx, sale, s.admitted(ctx, sale, claims)) }) })
		combine.Safely(others, func() { s.runTogether(ctx, sale, others) })
		claiming.Wait()
	}
}

// withoutGone refuses the reserve requests whose units have gone while they waited, and returns the
// others: in a rush thousands wait for what the first calls take.
func withoutGone(batch []*Call) []*Call {
	out := batch[:0]
	for _, t := range batch {
		if c := t.Request.claim; c != nil && c.of.Recall != nil {
			if no := c.of.Recall(); no != nil {
				t.Answer(result{gone: no}, nil)
				continue
			}
		}
		out = append(out, t)
	}
	return out
}

// apart separates reserve requests from other operations.
func apart(batch []*Call) (claims, others []*Call) {
	n := 0
	for _, t := range batch {
		if t.Request.claim != nil {
			n++
		}
	}
	switch n {
	case 0:
		return nil, batch
	case len(batch):
		return batch, nil
	}
	claims, others = make([]*Call, 0, n), make([]*Call, 0, len(batch)-n)
	for _, t := range batch {
		if t.Request.claim != nil {
			claims = append(claims, t)
		} else {
			others = append(others, t)
		}
	}
	return claims, others
}

// setTimes sets until when each reserve request may run, in Redis's own time, and returns
// the batch without those whose time is up. An error means that nothing was sent.
func (s *Store) setTimes(ctx context.Context, sale string, batch []*Call) ([]*Call, error) {
	c := s.shard.Clock(sale)
	if _, known := c.Now(); (!known || c.Broken.Load()) && hasRequest(batch) {
		// each reserve request that gets no answer leaves a release to be sent later
		if err := s.shard.Reach(ctx, sale); err != nil {
			return batch, fmt.Errorf("%w (%w)", err, shard.ErrNotSent)
		}
	}
	out := batch[:0]
	for _, t := range batch {
		if t.Request.claim == nil {
			out = append(out, t)
			continue
		}
		now, _ := c.Now()
		until, ok := t.Ctx.Deadline()
		if !ok {
			until = time.Now().Add(s.shard.Options.Timeout)
		}
		left := time.Until(until)
		if left <= 0 {
			t.Fail(combine.ErrNoTime)
			continue
		}
		t.Request.claim.notAfter = now + left.Milliseconds()
		out = append(out, t)
	}
	return out, nil
}

func hasRequest(batch []*Call) bool {
	return slices.ContainsFunc(batch, func(t *Call) bool { return t.Request.claim != nil })
}

// reserveTogether sends reserve requests in one call, if that is possible.
func (s *Store) reserveTogether(ctx context.Context, sale string, batch []*Call) {
	if len(batch) == 0 {
		return
	}
	replies, seq, err := s.reserveAt(ctx, sale, requestsOf(batch))
	s.sold(sale, batch, replies, seq, err)
	s.answerEach(sale, batch, replies, seq, err, func(half []*Call) { s.reserveTogether(ctx, sale, half) })
}

// runTogether runs operations other than reserve requests in one call, if that is possible.
func (s *Store) runTogether(ctx context.Context, sale string, batch []*Call) {
	replies, seq, err := s.shard.RunWith(ctx, s.shard.Options.ReplicaAcks, sale, operationsOf(batch)...)
	s.answerEach(sale, batch, replies, seq, err, func(half []*Call) { s.runTogether(ctx, sale, half) })
}

// allTogether sends reserve requests and other operations on one connection, so that both
// wait for the replicas once.
func (s *Store) allTogether(ctx context.Context, sale string, claims, others []*Call) {
	if err := s.shard.Acquire(ctx, sale); err != nil {
		combine.FailAll(claims, err)
		combine.FailAll(others, err)
		return
	}
	before := s.shard.Clock(sale).Mark()
	term, known := s.shard.History(ctx, sale)
	done := s.shard.EvalReplicated(ctx,
		s.shard.CallOf(lua.Reserve, s.shard.ShardKeys(sale), reserveArgs(term, known, requestsOf(claims))),
		s.shard.CallOfAll(ctx, sale, operationsOf(others)))
	finish := func(batch []*Call, e shard.Evaluated, again func([]*Call)) {
		if shard.NotLoaded(e.Err) { // it did not run: alone it is loaded first
			again(batch)
			return
		}
		replies, seq, err := s.shard.Replies(ctx, sale, before, e.Raw, len(batch), s.shard.Options.ReplicaAcks, shard.Explain(e.Err))
		if errors.Is(err, shard.ErrFenced) { // it did not run: alone it waits for the next heartbeat
			again(batch)
			return
		}
		if err == nil {
			err = s.shard.StillLeased(ctx, sale, before)
		}
		s.sold(sale, batch, replies, seq, err)
		s.answerEach(sale, batch, replies, seq, err, again)
	}
	finish(claims, done[0], func(some []*Call) { s.reserveTogether(ctx, sale, some) })
	finish(others, done[1], func(some []*Call) { s.runTogether(ctx, sale, some) })
}

func requestsOf(batch []*Call) []*encodedRequest {
	claims := make([]*encodedRequest, len(batch))
	for i, t := range batch {
		claims[i] = t.Request.claim
	}
	return claims
}

func operationsOf(batch []*Call) []shard.Operation {
	ops := make([]shard.Operation, len(batch))
	for i, t := range batch {
		ops[i] = t.Request.Op
	}
	return ops
}

// answerEach gives each request of a batch its answer. If the script failed, again runs
// each half of the batch, so that one request does not fail the others.
func (s *Store) answerEach(sale string, batch []*Call, replies []shard.Reply, seq int64, err error, again func([]*Call)) {
	switch {
	case err == nil:
		promises := s.promises.Load()
		for i, t := range batch {
			if promises != nil && isPromise(t, replies[i]) {
				(*promises).Promised(sale, seq, promiseOf(t, replies[i]))
			}
			if c := t.Request.claim; c != nil {
				c.learn(seq, replies[i]) // before the next call is sent
			}
			t.Answer(result{Reply: replies[i], Seq: seq}, nil)
		}
	case len(replies) == len(batch) && errors.Is(err, shard.ErrNoLease):
		for i, t := range batch {
			if t.Request.claim == nil && !t.Request.Op.NeedsLease() {
				t.Answer(result{Reply: replies[i], Seq: seq}, nil)
			} else {
				t.Fail(err)
			}
		}
	case len(batch) > 1 && shard.ScriptFailed(err):
		// data that one of them reads is damaged
		half := len(batch) / 2
		again(batch[:half])
		again(batch[half:])
	default:
		combine.FailAll(batch, err)
	}
}
