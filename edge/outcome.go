package edge

import (
	"context"
	"errors"

	"github.com/stockgate/stockgate/combine"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/shard"
	"go.uber.org/zap"
)

// outcome is how an attempt ended, or what else Redis must be told about its reservation.
type outcome struct {
	sale, id string
	kind     outcomeKind
	source   reservation.Source // of a release
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
func (o *outcome) promised() bool {
	return o.kind != outcomeFree && o.source != reservation.SourceUnsent
}

// operationOf is what Redis is told. It may be told again.
func (e *Edge) operationOf(o *outcome) shard.Operation {
	switch o.kind {
	case outcomeConfirm:
		return reservation.Confirmation(o.id, reservation.Answer, o.cause)
	case outcomeRelease:
		return e.Store.Releasing(o.sale, o.id, o.source, o.cause)
	case outcomeDoubt:
		return shard.Op("doubt", o.id, o.cause)
	}
	return shard.Op("free", o.id)
}

// Abandon releases a reservation that was never forwarded, in the background and
// until Redis has heard of it. A reserve that is still under way is refused then.
func (e *Edge) Abandon(saleID, id string) {
	e.backlog.add(outcome{saleID, id, outcomeRelease, reservation.SourceUnsent, unsent})
}

// ConfirmEventually tells Redis that the shop took the order. Units that had gone elsewhere
// meanwhile are noted as unbacked. When Redis does not answer, or too few replicas have
// it, it is told later, until they have.
func (e *Edge) ConfirmEventually(ctx context.Context, saleID, id, cause string) (record.State, error) {
	return e.settled(ctx, outcome{saleID, id, outcomeConfirm, reservation.Answer, cause})
}

// ReleaseEventually tells Redis that the order will not come, by the shop's word or because
// it was never sent. When Redis does not answer it is told later.
func (e *Edge) ReleaseEventually(ctx context.Context, saleID, id string, word reservation.Source, cause string) (record.State, error) {
	return e.settled(ctx, outcome{saleID, id, outcomeRelease, word, cause})
}

// DoubtEventually tells Redis that nobody knows whether the shop took the order. When Redis
// does not answer it is told later.
func (e *Edge) DoubtEventually(ctx context.Context, saleID, id, cause string) (record.State, error) {
	return e.settled(ctx, outcome{saleID, id, outcomeDoubt, reservation.Answer, cause})
}

// Free lets the same buyer buy the same again while the hold goes on: the attempt
// was answered, and the shop resolves it later. When Redis does not answer it is
// told later.
func (e *Edge) Free(ctx context.Context, sale, id string) {
	_, _ = e.settled(ctx, outcome{sale, id, outcomeFree, reservation.Answer, ""})
}

func (e *Edge) settled(ctx context.Context, o outcome) (record.State, error) {
	lines := e.own.take(o.id)
	op := e.operationOf(&o)
	r, seq, err := e.Store.Do(combine.Within(ctx, e.shard.Timeout()), o.sale, op)
	state, err := e.noteReply(&o, op, r, seq, err)
	if err == nil && state == record.Released {
		e.gaveBack(o.sale, lines)
	}
	if errors.Is(err, shard.ErrUnavailable) {
		(*e.metrics.Load()).RedisFailed("settle")
		e.backlog.add(o)
	}
	return state, err
}

// tell tells Redis of some outcomes of one sale, in one call as far as there is room.
func (e *Edge) sendOutcomes(ctx context.Context, some []outcome) []outcomeReply {
	ctx = combine.Within(ctx, 2*e.shard.Timeout())
	tickets := make([]*reservation.Call, len(some))
	for i := range some {
		tickets[i] = reservation.TicketFor(e.operationOf(&some[i]))
	}
	e.Store.Calls.Ask(ctx, some[0].sale, tickets...)
	out := make([]outcomeReply, len(some))
	for i, t := range tickets {
		a, err := e.Store.Calls.AnswerTo(t)
		out[i].state, out[i].err = e.noteReply(&some[i], t.Request.Op, a.Reply, a.Seq, err)
	}
	return out
}

// heard reads Redis's answer to an outcome, and the shard's seq with it. An internal one need
// not outlive a failover: it counts as told when it ran. One for a sale that Redis has lost
// was not told: the sale may be restored, and the reservation with it.
func (e *Edge) noteReply(o *outcome, op shard.Operation, r shard.Reply, seq int64, err error) (record.State, error) {
	if errors.Is(err, shard.ErrNotReplicated) && !o.promised() {
		return "", nil
	}
	r, err = reservation.Judged(op.Name, r, err)
	if errors.Is(err, reservation.ErrNotFound) && seq == 0 { // not even the sale is there
		if _, listed := e.Catalogue().Sale(o.sale); listed {
			return "", &LostError{o.sale}
		}
	}
	state := record.State(r.Text(1))
	if o.kind == outcomeConfirm && state == record.Unbacked {
		(*e.metrics.Load()).SoldUnbacked()
		e.log.Error("the shop took an order whose units were given back and sold: see `caddy stockgate holds --state unbacked`",
			zap.String("sale", o.sale), zap.String("reservation", o.id))
	}
	return state, err
}
