package edge

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// outcome is how an attempt ended, or another change of its reservation that Redis must have.
type outcome struct {
	sale, id string
	kind     outcomeKind
	source   reservation.Authority // of a release
	cause    string
	// order is what the shop says it sold; nil: it does not say, and what was reserved counts.
	order *reservation.ShopOrder
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

// promised reports whether the shop or the client knows of the outcome. The others are
// internal: without them the hold ends at its deadline, or the order that waits is sent, and its
// client knows that this may be.
func (o *outcome) promised() bool {
	return o.kind != outcomeFree && o.source != reservation.SourceUnsent && o.source != reservation.SourceUnheard
}

// operationOf returns the operation that an outcome asks of Redis. It may run twice.
func (e *Edge) operationOf(o *outcome) shard.Operation {
	switch o.kind {
	case outcomeConfirm:
		if o.order != nil {
			return o.order.Sale(o.id, reservation.SourceAnswer, o.cause)
		}
		return reservation.Confirmation(o.id, reservation.SourceAnswer, o.cause)
	case outcomeRelease:
		return e.Store.Releasing(o.sale, o.id, o.source, o.cause)
	case outcomeDoubt:
		return shard.Op(lua.Doubt, o.id, o.cause)
	}
	return shard.Op(lua.Free, o.id)
}

// abandon releases a reservation that this edge never forwarded. It retries in the background
// until Redis has the release. A reserve request that is still under way is then refused.
// queued: it may wait, and another edge may forward it.
func (e *Edge) abandon(saleID, id string, queued bool) {
	word := reservation.SourceUnsent
	if queued {
		word = reservation.SourceUnheard
	}
	e.backlog.add(outcome{sale: saleID, id: id, kind: outcomeRelease, source: word, cause: unsent})
}

// Abandoned reports whether a reservation was never forwarded and is to be released, which Redis does
// not know yet.
func (e *Edge) Abandoned(saleID, id string) bool {
	return e.backlog.has(saleID, outcomeKey{id, outcomeRelease})
}

// ConfirmEventually confirms a reservation whose order the shop took. If its units were
// sold elsewhere meanwhile, the reservation becomes unbacked. If Redis does not answer, has a newer
// schema, or too few replicas have the change, the edge retries in the background until they have.
func (e *Edge) ConfirmEventually(ctx context.Context, saleID, id, cause string) (record.State, error) {
	return e.settled(ctx, outcome{sale: saleID, id: id, kind: outcomeConfirm, source: reservation.SourceAnswer, cause: cause})
}

// ReleaseEventually releases a reservation that gets no order: the shop said so, or the
// attempt was never sent. If Redis does not answer, the edge retries in the background.
func (e *Edge) ReleaseEventually(ctx context.Context, saleID, id string, word reservation.Authority, cause string) (record.State, error) {
	return e.settled(ctx, outcome{sale: saleID, id: id, kind: outcomeRelease, source: word, cause: cause})
}

// DoubtEventually marks a hold as in doubt: it is unknown whether the shop took the order.
// If Redis does not answer, the edge retries in the background.
func (e *Edge) DoubtEventually(ctx context.Context, saleID, id, cause string) (record.State, error) {
	return e.settled(ctx, outcome{sale: saleID, id: id, kind: outcomeDoubt, source: reservation.SourceAnswer, cause: cause})
}

// Free lets the same buyer buy the same again while the hold goes on: the attempt was
// answered, and the shop settles it later. If Redis does not answer, the edge retries in
// the background.
func (e *Edge) Free(ctx context.Context, sale, id string) {
	_, _ = e.settled(ctx, outcome{sale: sale, id: id, kind: outcomeFree, source: reservation.SourceAnswer})
}

func (e *Edge) settled(ctx context.Context, o outcome) (record.State, error) {
	lines := e.own.take(o.id)
	op := e.operationOf(&o)
	r, seq, err := e.Store.Do(combine.Within(ctx, e.shard.Timeout()), o.sale, op)
	state, err := e.noteReply(&o, op, r, seq, err)
	if err == nil && state == record.Released {
		e.gaveBack(o.sale, lines)
	}
	if untold(err) {
		(*e.metrics.Load()).RedisFailed("settle")
		e.backlog.add(o)
	}
	return state, err
}

// untold says that Redis may not have an outcome yet, and may take it later: also from an edge that is
// too old for it, once the schema is set back.
func untold(err error) bool {
	return errors.Is(err, shard.ErrUnavailable) || errors.Is(err, shard.ErrNewerSchema)
}

// sendOutcomes sends Redis outcomes of one sale, in one call as far as there is room.
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

// noteReply interprets Redis's answer to an outcome, with the shard's seq. An outcome that too
// few replicas have is told again, also an internal release: a replica may have the hold
// already, and bring it back when it is promoted. Only outcomeFree counts as done once it ran.
// An outcome for a sale that Redis has lost is not done: the sale may be restored with the
// reservation.
func (e *Edge) noteReply(o *outcome, op shard.Operation, r shard.Reply, seq int64, err error) (record.State, error) {
	if errors.Is(err, shard.ErrNotReplicated) && o.kind == outcomeFree {
		return "", nil
	}
	r, err = reservation.Judged(op.Operation, r, err)
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
	if o.order != nil && err == nil {
		e.noteDiffers(o, reservation.DiffersOf(r))
	}
	return state, err
}

// noteDiffers says how an order differs from its reservation.
func (e *Edge) noteDiffers(o *outcome, d reservation.Differs) {
	log := e.log.With(zap.String("sale", o.sale), zap.String("reservation", o.id))
	if d.Fewer != "" {
		(*e.metrics.Load()).SoldOther("fewer")
		log.Warn("the shop sold less than was reserved: the rest is on sale again", zap.String("units", d.Fewer))
	}
	switch {
	case d.More == "":
	case d.MoreState == record.Unbacked:
		(*e.metrics.Load()).SoldOther("more")
		(*e.metrics.Load()).SoldUnbacked()
		log.Error("the shop sold more than was reserved, and the units are sold to others: its cart was changed after it was looked up; see `caddy stockgate holds --state unbacked`",
			zap.String("units", d.More), zap.String("unbacked", reservation.MoreOf(o.id)))
	default:
		(*e.metrics.Load()).SoldOther("more")
		log.Warn("the shop sold more than was reserved: the rest was reserved too, its cart was changed after it was looked up",
			zap.String("units", d.More), zap.String("reserved", reservation.MoreOf(o.id)))
	}
}
