package reservation

import (
	"context"
	"fmt"
	"slices"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Promise is what Redis has told a caller of this process: that stock is held, or how a
// reservation has ended.
type Promise struct {
	request request
	waits   bool // the order behind a claim was put into the line, not sent
}

func promiseOf(t *Call, r shard.Reply) Promise {
	c := t.Request.claim
	return Promise{request: t.Request, waits: c != nil && c.order() != nil && record.State(r.Text(1)) == record.Waiting}
}

// Promises keeps what Redis has promised until this process has read it in the journal. Its
// method must be fast.
type Promises interface {
	// Promised is called before the caller has the answer. The movement has the number seq in
	// the sale's journal, or an earlier one.
	Promised(sale string, seq int64, p Promise)
}

// Keep has a Promises told of every promise from now on.
func (s *Store) Keep(p Promises) { s.promises.Store(&p) }

// isPromise reports whether a client, the shop or an operator relies on an answer.
func isPromise(t *Call, r shard.Reply) bool {
	if r.Code() != lua.OK {
		return false
	}
	return t.Request.claim != nil || t.Request.Op.Promise
}

// Told is what has become of promises that were told again.
type Told struct {
	Kept []Promise
	// Failed are those that cannot be kept now: other buyers have the units, or their reservation is
	// not known. Orders that the shop has taken are unbacked then.
	Failed []Promise
	// Untold are those after a call that failed, and what that call was about.
	Untold []Promise
	// Seq is the shard's after the last call.
	Seq int64
}

// Tell asks a shard again for what it has promised and may have lost, in order. The same request
// twice has no effect. ctx must have the pass of the shard's fence, or there must be none. With an
// error it returns how far it came.
func (s *Store) Tell(ctx context.Context, sale string, promises []Promise) (*Told, error) {
	t := new(Told)
	failed := make(map[string]*encodedRequest) // reserve requests by id
	for i, p := range promises {
		var replies []shard.Reply
		var seq int64
		var err error
		if c := p.request.claim; c != nil {
			replies, seq, err = s.claimAgain(ctx, sale, c.told(p.waits), p.request.instead)
		} else {
			replies, seq, err = s.shard.RunWith(ctx, s.shard.Options.ReplicaAcks, sale, s.again(sale, p.request.Op, failed)...)
		}
		if err != nil {
			t.Untold = promises[i:]
			return t, err
		}
		t.Seq = seq
		r := replies[0]
		if p.isKept(r) {
			t.Kept = append(t.Kept, p)
		} else {
			t.Failed = append(t.Failed, p)
		}
		if c := p.request.claim; c != nil && r.Code() != lua.OK {
			failed[c.of.ID] = c
		}
	}
	return t, nil
}

// isKept reports whether a promise is kept, by the answer to its request that was told again. What
// has gone on since is kept too: a hold that was released, what was done with a hold that has left
// that state, and a release that the shop's order has overtaken. A hold that has expired has not got
// what was done with it, and an order that another edge has sent was not withdrawn.
func (p *Promise) isKept(r shard.Reply) bool {
	state := record.State(r.Text(1))
	switch {
	case r.Code() == lua.OK:
		return state != record.Unbacked
	case p.request.claim != nil:
		return r.Code() == lua.Gone
	case r.Code() == lua.NotFound && p.request.Op.Operation == lua.Withdraw: // the person is not on the list
		return true
	case r.Code() != lua.Conflict:
		return false
	}
	switch p.request.Op.Operation {
	case lua.Extend, lua.Send, lua.Again:
		return state == record.InDoubt || state == record.Confirmed || state == record.Released || state == record.Unbacked
	case lua.Release:
		return state == record.Confirmed || state == record.Unbacked
	}
	return false
}

// claimAgain makes a claim again, in the place of what it took before; nil: of nothing. If a hold whose place
// it took is gone or has ended, it is an ordinary claim.
func (s *Store) claimAgain(ctx context.Context, sale string, c *encodedRequest, of instead) ([]shard.Reply, int64, error) {
	again := *c
	now, ok := s.shard.Clock(sale).Now()
	if !ok {
		return nil, 0, fmt.Errorf("%w: its time is not known", shard.ErrUnavailable)
	}
	again.notAfter = now + s.shard.Options.Timeout.Milliseconds() + shard.Tolerance
	if of == nil {
		return s.reserveAt(ctx, sale, []*encodedRequest{&again})
	}
	hold, ofCart := of.(ofHold)
	if ofCart {
		// no request of that hold was under way any more, which no movement says
		free := shard.Op(lua.Free, hold.id)
		if replies, seq, err := s.shard.RunWith(ctx, s.shard.Options.ReplicaAcks, sale, free); err != nil {
			return replies, seq, err
		}
	}
	replies, seq, err := s.shard.RunWith(ctx, s.shard.Options.ReplicaAcks, sale, of.operation(&again, again.notAfter))
	if err == nil && (replies[0].Code() == lua.NotFound || replies[0].Code() == lua.Conflict) {
		if hold.listed {
			return s.claimAgain(ctx, sale, c, hold.identities)
		}
		return s.claimAgain(ctx, sale, c, nil)
	}
	return replies, seq, err
}

// again is an operation as it is told again. A confirm was promised, so it cannot be taken
// back: without its units the order is unbacked, also where Redis has lost the reservation
// and does not make it again. What the order has comes after it.
func (s *Store) again(sale string, op shard.Operation, failed map[string]*encodedRequest) []shard.Operation {
	if op.Operation == lua.Send { // whichever try had the turn: the edge has sent it
		op.Args = slices.Clone(op.Args)
		op.Args[2] = "told"
		return []shard.Operation{op}
	}
	if op.Operation == lua.Leave { // also if its reserve comes later, or does not wait any more
		id, _ := op.Args[0].(string)
		cause, _ := op.Args[1].(string)
		return []shard.Operation{s.Releasing(sale, id, SourceUnheard, cause)}
	}
	switch op.Operation {
	case lua.Enter: // whatever the sale is like now
		op.Args = slices.Clone(op.Args)
		op.Args[2] = "told"
	case lua.Withdraw: // the buyer's entry may have got another number
		op.Args = slices.Clone(op.Args)
		if op.Args[1] != "" {
			op.Args[0] = ""
		}
	}
	if op.Operation != lua.Confirm && op.Operation != lua.Sold {
		return []shard.Operation{op}
	}
	args := append([]any{op.Args[0], "told"}, op.Args[2])
	id, _ := op.Args[0].(string)
	switch c := failed[id]; {
	case c != nil:
		now, _ := s.shard.Clock(sale).Now()
		args = append(args, c.evidence(now).args(c.of.Mode)...)
	case op.Operation == lua.Confirm:
		args = append(args, op.Args[3:]...)
	default:
		args = append(args, "")
	}
	again := []shard.Operation{shard.Op(lua.Confirm, args...)}
	if op.Operation == lua.Sold {
		again = append(again, op)
	}
	return again
}

// IDs are the ids of the reservations of some promises, at most so many.
func IDs(promises []Promise, most int) []string {
	ids := make([]string, 0, min(len(promises), most))
	for _, p := range promises[:cap(ids)] {
		if c := p.request.claim; c != nil {
			ids = append(ids, c.of.ID)
		} else {
			id, _ := p.request.Op.Args[0].(string)
			ids = append(ids, id)
		}
	}
	return ids
}
