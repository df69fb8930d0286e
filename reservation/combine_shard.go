package reservation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/lua"
)

// notAfterPlace is where a reserve's arguments have the time after which it must not
// run. It is filled in when it is sent.
const notAfterPlace = 1

// do runs one operation on a sale, together with those of others. It returns the
// shard's seq after the call.
func (s *Store) do(ctx context.Context, sale string, op operation) (reply, int64, error) {
	claim := op.name == "reserve"
	return s.calls.do(ctx, sale, &ticket{op: op, weight: 1 + len(op.args)/3, settles: !claim && op.name != "lookup"})
}

// sendOperations runs operations on one sale in one call of a script.
func (s *Store) sendOperations(sale string, batch []*ticket) {
	ctx, cancel := context.WithDeadline(context.Background(), s.callUntil(batch))
	defer cancel()
	batch, err := s.setTimes(ctx, sale, batch)
	if err != nil {
		answerAll(batch, err)
		return
	}
	if len(batch) > 0 {
		s.runTogether(ctx, sale, batch)
	}
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
		if t.op.name != "reserve" {
			out = append(out, t)
			continue
		}
		now, known := s.clock(sale).now()
		if !known {
			// a call without operations tells the time of the shard's server
			if _, err := s.run(ctx, s.scripts.Settle, sale, 0); err != nil {
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
		t.op.args[notAfterPlace] = now + left.Milliseconds()
		out = append(out, t)
	}
	return out, nil
}

// runTogether runs operations in one call, if that is possible. What cannot be done
// by one of them does not keep the others from being done.
func (s *Store) runTogether(ctx context.Context, sale string, batch []*ticket) {
	script, acks, mixed := s.scriptFor(batch)
	ops := make([]operation, len(batch))
	for i, t := range batch {
		ops[i] = t.op
	}
	replies, seq, err := s.runAt(ctx, script, sale, acks, ops...)
	switch {
	case err == nil:
		for i, t := range batch {
			t.answer(replies[i], seq, nil)
		}
	case errors.Is(err, errNotAcknowledged): // it ran, and only reserves need replicas
		for i, t := range batch {
			if t.op.name == "reserve" {
				t.answer(nil, 0, err)
			} else {
				t.answer(replies[i], seq, nil)
			}
		}
	case mixed && redis.HasErrorPrefix(err, "OOM"):
		var settles []*ticket
		for _, t := range batch {
			if t.settles || t.op.name == "lookup" {
				settles = append(settles, t)
			} else {
				t.answer(nil, 0, err)
			}
		}
		s.runTogether(ctx, sale, settles)
	case len(batch) > 1 && scriptFailed(err):
		// something that belongs to one of them is not as it should be
		half := len(batch) / 2
		s.runTogether(ctx, sale, batch[:half])
		s.runTogether(ctx, sale, batch[half:])
	default:
		answerAll(batch, err)
	}
}

// scriptFor is the script that has all operations of a batch, and how many replicas
// must have what it did. Mixed: it also has some that a full Redis does not refuse.
func (s *Store) scriptFor(batch []*ticket) (script lua.Script, acks int, mixed bool) {
	reserves := 0
	for _, t := range batch {
		if t.op.name == "reserve" {
			reserves++
		}
	}
	switch reserves {
	case 0:
		return s.scripts.Settle, 0, false
	case len(batch):
		return s.scripts.Claim, s.options.ReplicaAcks, false
	}
	return s.scripts.Mixed, s.options.ReplicaAcks, true
}

// scriptFailed says that a script ended with an error of its own, before it wrote.
func scriptFailed(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && !neverBegan(err) && strings.Contains(said.Error(), "script") && !strings.HasPrefix(said.Error(), "BUSY")
}
