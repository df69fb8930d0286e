// Package reservations serves requests of the admin API about reservations: one by one, the holds of a sale, and returns.
package reservations

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/caddymodule/shopapi"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Routes returns the routes of requests about reservations.
func Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		serve.Route("GET /stockgate/sales/{id}/holds", listHolds),
		serve.Route("GET /stockgate/holds", listHolds),
		serve.Route("POST /stockgate/sales/{id}/holds/confirm", confirmHolds),
		serve.Route("POST /stockgate/sales/{id}/holds/release", releaseHolds),
		serve.Route("POST /stockgate/sales/{id}/holds/names", namesIn),
		serve.Route("POST /stockgate/sales/{id}/returns", giveBackMany),
		serve.Route("GET /stockgate/reservations/{id}", showReservation),
		serve.Route("POST /stockgate/reservations/{id}/confirm", confirm),
		serve.Route("POST /stockgate/reservations/{id}/release", release),
		serve.Route("POST /stockgate/reservations/{id}/return", giveBack),
		serve.Route("POST /stockgate/reservations/{id}/extend", extend),
	}
}

// find looks a reservation up by the id in the path.
func find(o *serve.Operator, r *http.Request) (*reservation.Record, error) {
	id, err := request.Word("the reservation's id", r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	found, err := o.Runtime.Store.Reservation(o.Ctx, id)
	if err = o.Runtime.Missing(o.Ctx, "", err); errors.Is(err, reservation.ErrNotFound) {
		err = fmt.Errorf("%w: %s", err, id)
	}
	return found, err
}

func showReservation(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	return find(o, r)
}

// confirm settles a reservation whose order the shop has, as the operator knows. Units that
// were given back are taken again; if they are sold, a refund is needed.
func confirm(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	before, err := find(o, r)
	if err != nil {
		return nil, err
	}
	state, err := o.Runtime.Store.Confirm(o.Ctx, before.Sale, before.ID, reservation.SourceOperator, o.Cause)
	return resolved(o, before, state, err, "reservation confirmed", false)
}

// release settles a reservation whose order the shop does not have, as the operator knows.
// Before the deadline the shop may still take the order, so a release then needs force.
func release(o *serve.Operator, r *http.Request) (any, error) {
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
	if err := request.JSON(r, serve.SmallBody, &body); err != nil {
		return nil, err
	}
	before, err := find(o, r)
	if err != nil {
		return nil, err
	}
	word := reservation.SourceOperator
	if body.Force {
		word = reservation.SourceForce
	}
	state, err := o.Runtime.Store.Release(o.Ctx, before.Sale, before.ID, word, o.Cause)
	return resolved(o, before, state, err, "reservation released", body.Force)
}

// giveBack returns units of a confirmed reservation.
func giveBack(o *serve.Operator, r *http.Request) (any, error) {
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
	before, err := find(o, r)
	if err != nil {
		return nil, err
	}
	returned.Cause = o.Cause
	_, err = o.Runtime.Store.Return(o.Ctx, before.Sale, before.ID, returned)
	return resolved(o, before, record.Confirmed, err, "units returned", false,
		zap.String("return", returned.ID), zap.Any("lines", returned.Lines), zap.Bool("restock", returned.Restock))
}

// extend postpones the deadline of a hold.
func extend(o *serve.Operator, r *http.Request) (any, error) {
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
	before, err := find(o, r)
	if err != nil {
		return nil, err
	}
	listing, err := o.Runtime.Listing(o.Ctx, before.Sale)
	if err != nil {
		return nil, err
	}
	_, err = o.Runtime.Store.Extend(o.Ctx, before.Sale, before.ID, holdFor, listing.Sale.LongestHold())
	return resolved(o, before, record.Held, err, "reservation extended", false, zap.Duration("hold_for", holdFor))
}

// resolved logs how a reservation was settled and returns its present state.
func resolved(o *serve.Operator, before *reservation.Record, state record.State, err error, change string, force bool, more ...zap.Field) (any, error) {
	err = o.Noted(err, change, append(more, zap.String("sale", before.Sale), zap.String("reservation", before.ID),
		zap.String("was", string(before.State)), zap.String("state", string(state)), zap.Bool("force", force))...)
	if err != nil {
		return nil, err
	}
	if now, err := o.Runtime.Store.ReservationIn(o.Ctx, before.Sale, before.ID); err == nil {
		return now, nil
	}
	after := *before // Redis has stopped answering: the change is made all the same
	after.State = state
	return &after, nil
}
