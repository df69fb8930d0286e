package operator

import (
	"errors"
	"fmt"
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/shopapi"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// find looks a reservation up by the id in the path.
func (o *operator) find(r *http.Request) (*reservation.Record, error) {
	id, err := request.Word("the reservation's id", r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	found, err := o.runtime.Store.Reservation(o.ctx, id)
	if err = o.runtime.Missing(o.ctx, "", err); errors.Is(err, reservation.ErrNotFound) {
		err = fmt.Errorf("%w: %s", err, id)
	}
	return found, err
}

func (o *operator) showReservation(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	return o.find(r)
}

// confirm settles a reservation whose order the shop has, as the operator knows. Units that
// were given back are taken again; if they are sold, a refund is needed.
func (o *operator) confirm(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	before, err := o.find(r)
	if err != nil {
		return nil, err
	}
	state, err := o.runtime.Store.Confirm(o.ctx, before.Sale, before.ID, reservation.SourceOperator, o.cause)
	return o.resolved(before, state, err, "reservation confirmed", false)
}

// release settles a reservation whose order the shop does not have, as the operator knows.
// Before the deadline the shop may still take the order, so a release then needs force.
func (o *operator) release(r *http.Request) (any, error) {
	query, err := request.Query(r, "force")
	if err != nil {
		return nil, err
	}
	force, err := request.Flag(query, "force")
	if err != nil {
		return nil, err
	}
	body := struct {
		Force bool `json:"force"`
	}{force}
	if err := request.JSON(r, adminBody, &body); err != nil {
		return nil, err
	}
	before, err := o.find(r)
	if err != nil {
		return nil, err
	}
	word := reservation.SourceOperator
	if body.Force {
		word = reservation.SourceForce
	}
	state, err := o.runtime.Store.Release(o.ctx, before.Sale, before.ID, word, o.cause)
	return o.resolved(before, state, err, "reservation released", body.Force)
}

// giveBack returns units of a confirmed reservation.
func (o *operator) giveBack(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	body, err := request.Body(r, shopapi.MaxBody)
	if err != nil {
		return nil, err
	}
	returned, err := shopapi.ReadReturn(body)
	if err != nil {
		return nil, request.Bad("%w", err)
	}
	before, err := o.find(r)
	if err != nil {
		return nil, err
	}
	returned.Cause = o.cause
	_, err = o.runtime.Store.Return(o.ctx, before.Sale, before.ID, returned)
	return o.resolved(before, record.Confirmed, err, "units returned", false,
		zap.String("return", returned.ID), zap.Any("lines", returned.Lines), zap.Bool("restock", returned.Restock))
}

// extend postpones the deadline of a hold.
func (o *operator) extend(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	body, err := request.Body(r, shopapi.MaxBody)
	if err != nil {
		return nil, err
	}
	holdFor, err := shopapi.ReadExtension(body)
	if err != nil {
		return nil, request.Bad("%w", err)
	}
	before, err := o.find(r)
	if err != nil {
		return nil, err
	}
	listing, err := o.runtime.Listing(o.ctx, before.Sale)
	if err != nil {
		return nil, err
	}
	_, err = o.runtime.Store.Extend(o.ctx, before.Sale, before.ID, holdFor, listing.Sale.LongestHold())
	return o.resolved(before, record.Held, err, "reservation extended", false, zap.Duration("hold_for", holdFor))
}

// resolved logs how a reservation was settled and returns its present state.
func (o *operator) resolved(before *reservation.Record, state record.State, err error, change string, force bool, more ...zap.Field) (any, error) {
	err = o.noted(err, change, append(more, zap.String("sale", before.Sale), zap.String("reservation", before.ID),
		zap.String("was", string(before.State)), zap.String("state", string(state)), zap.Bool("force", force))...)
	if err != nil {
		return nil, err
	}
	if now, err := o.runtime.Store.ReservationIn(o.ctx, before.Sale, before.ID); err == nil {
		return now, nil
	}
	after := *before // Redis has stopped answering: the change is made all the same
	after.State = state
	return &after, nil
}
