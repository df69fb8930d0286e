package reservation

import (
	"context"
	"errors"

	"go.uber.org/zap"
)

// outcome is how an attempt ended, or what else Redis must be told about its reservation.
type outcome struct {
	sale, id string
	kind     outcomeKind
	word     Word // of a release
	cause    string
}

type outcomeKind uint8

const (
	outcomeConfirm outcomeKind = iota
	outcomeRelease
	outcomeDoubt
	// outcomeFree: the attempt was answered while its hold goes on.
	outcomeFree
)

func (k outcomeKind) String() string {
	return [...]string{"confirm", "release", "in_doubt", "free"}[k]
}

// unsent is the cause of an outcome whose reservation was never forwarded.
const unsent = "unsent"

// promised says that the shop or the client knows of the outcome. The others are internal:
// without them the hold ends by its deadline.
func (o *outcome) promised() bool { return o.kind != outcomeFree && o.word != Unsent }

// operationOf is what Redis is told. It may be told again.
func (s *Store) operationOf(o *outcome) operation {
	switch o.kind {
	case outcomeConfirm:
		return confirmation(o.id, Answer, o.cause)
	case outcomeRelease:
		return s.releasing(o.sale, o.id, o.word, o.cause)
	case outcomeDoubt:
		return operation{"doubt", []any{o.id, o.cause}}
	}
	return operation{"free", []any{o.id}}
}

// Abandon releases a reservation that was never forwarded, in the background and
// until Redis has heard of it. A reserve that is still under way is refused then.
func (e *Edge) Abandon(saleID, id string) {
	e.backlog.add(outcome{saleID, id, outcomeRelease, Unsent, unsent})
}

// ConfirmEventually tells Redis that the shop took the order. Units that had gone elsewhere
// meanwhile are noted as unbacked. When Redis does not answer, or too few replicas have
// it, it is told later, until they have.
func (e *Edge) ConfirmEventually(ctx context.Context, saleID, id, cause string) (State, error) {
	return e.settled(ctx, outcome{saleID, id, outcomeConfirm, Answer, cause})
}

// ReleaseEventually tells Redis that the order will not come, by the shop's word or because
// it was never sent. When Redis does not answer it is told later.
func (e *Edge) ReleaseEventually(ctx context.Context, saleID, id string, word Word, cause string) (State, error) {
	return e.settled(ctx, outcome{saleID, id, outcomeRelease, word, cause})
}

// DoubtEventually tells Redis that nobody knows whether the shop took the order. When Redis
// does not answer it is told later.
func (e *Edge) DoubtEventually(ctx context.Context, saleID, id, cause string) (State, error) {
	return e.settled(ctx, outcome{saleID, id, outcomeDoubt, Answer, cause})
}

// Free lets the same buyer buy the same again while the hold goes on: the attempt
// was answered, and the shop resolves it later. When Redis does not answer it is
// told later.
func (e *Edge) Free(ctx context.Context, sale, id string) {
	_, _ = e.settled(ctx, outcome{sale, id, outcomeFree, Answer, ""})
}

func (e *Edge) settled(ctx context.Context, o outcome) (State, error) {
	lines := e.own.take(o.id)
	op := e.Store.operationOf(&o)
	r, seq, err := e.Store.do(within(ctx, e.Store.Timeout()), o.sale, op)
	state, err := e.heard(&o, op, r, seq, err)
	if err == nil && state == Released {
		e.gaveBack(o.sale, lines)
	}
	if errors.Is(err, ErrUnavailable) {
		(*e.metrics.Load()).RedisFailed("settle")
		e.backlog.add(o)
	}
	return state, err
}

// tell tells Redis of some outcomes of one sale, in one call as far as there is room.
func (e *Edge) tell(ctx context.Context, some []outcome) []told {
	ctx = within(ctx, 2*e.Store.Timeout())
	tickets := make([]*ticket, len(some))
	for i := range some {
		tickets[i] = ticketFor(e.Store.operationOf(&some[i]))
	}
	e.Store.calls.ask(ctx, some[0].sale, tickets...)
	out := make([]told, len(some))
	for i, t := range tickets {
		r, seq, err := e.Store.calls.answerTo(t)
		out[i].state, out[i].err = e.heard(&some[i], t.op, r, seq, err)
	}
	return out
}

// heard reads Redis's answer to an outcome, and the shard's seq with it. An internal one need
// not outlive a failover: it counts as told when it ran. One for a sale that Redis has lost
// was not told: the sale may be restored, and the reservation with it.
func (e *Edge) heard(o *outcome, op operation, r reply, seq int64, err error) (State, error) {
	if errors.Is(err, ErrNotReplicated) && !o.promised() {
		return "", nil
	}
	r, err = judged(op.name, r, err)
	if errors.Is(err, ErrNotFound) && seq == 0 { // not even the sale is there
		if _, listed := e.Catalogue().Sale(o.sale); listed {
			return "", &LostError{o.sale}
		}
	}
	state := State(r.word(1))
	if o.kind == outcomeConfirm && state == Unbacked {
		(*e.metrics.Load()).SoldUnbacked()
		e.log.Error("the shop took an order whose units were given back and sold: see `caddy stockgate holds --state unbacked`",
			zap.String("sale", o.sale), zap.String("reservation", o.id))
	}
	return state, err
}
