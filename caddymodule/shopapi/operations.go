package shopapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/token"
)

// apiCall is one request to the shop's API.
type apiCall struct {
	operation, id string
	ref           string // instead of the id

	// from the body and the parameters
	sale, token, cause string
	holdFor            time.Duration
	returned           reservation.Return

	ctx     context.Context
	app     *app.App
	runtime *edgeruntime.Runtime
}

// apiCause is the cause, in journal and record, of what the shop does through the API.
const apiCause = "api"

// because returns the cause, with the one that the shop gives.
func (c *apiCall) because() string {
	if c.cause == "" {
		return apiCause
	}
	return apiCause + ":" + c.cause
}

// find finds the reservation that a ref stands for. One that Redis has lost is found by its
// token, see claims.
func (c *apiCall) find() error {
	if c.ref == "" {
		return nil
	}
	found, err := c.runtime.Store.ByRef(c.ctx, c.sale, c.ref)
	switch {
	case err != nil:
		return err
	case len(found.Records) == 0 && !found.More && c.token != "":
		return nil
	case len(found.Records) == 0 && !found.More:
		return reservation.ErrNotFound
	case len(found.Records) > 1 || found.More:
		no := &apiProblem{Status: http.StatusConflict, Reason: "ambiguous", Detail: "several reservations have this ref: name one by its id"}
		for i := range found.Records {
			no.Reservations = append(no.Reservations, found.Records[i].ID)
		}
		return no
	}
	c.id, c.sale = found.Records[0].ID, found.Records[0].Sale
	if ended, again := found.Records[0].HeldAgain(); again && c.operation == "release" {
		c.id = ended
	}
	return nil
}

func (c *apiCall) show() (any, error) {
	if c.sale == "" {
		return c.runtime.Store.Reservation(c.ctx, c.id)
	}
	return c.runtime.Store.ReservationIn(c.ctx, c.sale, c.id)
}

// confirm settles a reservation whose order the shop has. With a token it restores a
// reservation that Redis has lost.
func (c *apiCall) confirm() (any, error) {
	claims, err := c.claims()
	if err != nil {
		return nil, err
	}
	if claims == nil {
		return c.resolve(func() (record.State, error) {
			return c.runtime.Store.Confirm(c.ctx, c.sale, c.id, reservation.SourceShop, c.because())
		})
	}
	// The token proves that the sale existed. That Redis does not know it says nothing about
	// the reservation, unless the sale was deleted on purpose.
	switch l, err := c.runtime.Listing(c.ctx, claims.Sale); {
	case errors.Is(err, shard.ErrNoSale), err == nil && l.Lost():
		deleted, err := c.runtime.Store.Journal().DeletedEpoch(c.ctx, claims.Sale)
		switch {
		case err != nil:
			return nil, err
		case claims.Epoch <= deleted:
			return nil, reservation.ErrNotFound
		}
		return nil, &edge.LostError{Sale: claims.Sale}
	case err != nil:
		return nil, err
	}
	return c.resolve(func() (record.State, error) {
		return c.runtime.ConfirmWith(c.ctx, &reservation.Evidence{
			Sale: claims.Sale, ID: claims.ID, Buyer: claims.Subject, Epoch: claims.Epoch, Ref: claims.Ref, Lines: claims.Held(), Ordered: claims.Lines,
			Created: time.Unix(claims.IssuedAt, 0), Exp: time.Unix(claims.ExpiresAt, 0),
		}, c.because())
	})
}

// release settles a reservation for which there will be no order. By a ref it never releases what
// is held again for the token of an earlier cart: the release was of the hold that has ended, and
// comes once more.
func (c *apiCall) release() (any, error) {
	return c.resolve(func() (record.State, error) {
		// An id that Redis does not know must not leave a tombstone: a reservation that the
		// shop knows has already reached Redis.
		if _, err := c.runtime.Store.ReservationIn(c.ctx, c.sale, c.id); err != nil {
			return "", err
		}
		return c.runtime.Store.Release(c.ctx, c.sale, c.id, reservation.SourceShop, c.because())
	})
}

// giveBack returns units of an order.
func (c *apiCall) giveBack() (any, error) {
	c.returned.Cause = c.because()
	return c.resolve(func() (record.State, error) {
		_, err := c.runtime.Store.Return(c.ctx, c.sale, c.id, c.returned)
		return record.Confirmed, err
	})
}

// extended is a reservation with the token for its new deadline.
type extended struct {
	*reservation.Record
	Token string `json:"token,omitempty"`
}

// extend postpones the deadline.
func (c *apiCall) extend() (any, error) {
	claims, err := c.claims()
	if err != nil {
		return nil, err
	}
	var hold reservation.Hold
	record, err := c.resolve(func() (record.State, error) {
		listing, err := c.runtime.Listing(c.ctx, c.sale)
		if err == nil {
			hold, err = c.runtime.Store.Extend(c.ctx, c.sale, c.id, c.holdFor, listing.Sale.LongestHold())
		}
		return record.Held, err
	})
	if err != nil {
		return nil, err
	}
	answer := extended{Record: record}
	if record.Deadline.Before(hold.Deadline) { // Redis stopped answering after the change
		record.Deadline, record.Exp, record.Created = hold.Deadline, hold.Exp, hold.Created
	}
	if claims != nil {
		claims.ExpiresAt = hold.Exp.Unix()
		if answer.Token, err = c.app.Keys().Signer().Sign(*claims); err != nil {
			return nil, fmt.Errorf("the deadline is put off, the token cannot be signed: %w", err)
		}
	}
	return answer, nil
}

// resolve changes a reservation and returns its present state. If the call does not name the
// sale it searches for it.
func (c *apiCall) resolve(change func() (record.State, error)) (*reservation.Record, error) {
	if c.sale == "" {
		found, err := c.runtime.Store.Reservation(c.ctx, c.id)
		if err != nil {
			return nil, err
		}
		c.sale = found.Sale
	}
	state, err := change()
	if err != nil {
		return nil, err
	}
	if now, err := c.runtime.Store.ReservationIn(c.ctx, c.sale, c.id); err == nil {
		return now, nil
	}
	// Redis has stopped answering: the change is made all the same
	return &reservation.Record{ID: c.id, Sale: c.sale, State: state, Cause: c.because(), Lines: []sale.Line{}}, nil
}

// claims reads the token of the body; nil: there is none. The token must be one that the edges
// signed for this reservation. It may have expired, because buyers may pay late.
func (c *apiCall) claims() (*token.Claims, error) {
	if c.token == "" {
		return nil, nil
	}
	claims, err := c.app.Keys().Verifier().Verify(c.token, token.Expect{AnySubject: true})
	if err != nil && !errors.Is(err, token.ErrExpired) {
		return nil, malformed("token: %s", tokenFault(err))
	}
	if c.id == "" && claims.Ref == c.ref {
		c.id = claims.ID
	}
	switch {
	case c.id == "":
		return nil, malformed("token: it is about another ref")
	case claims.ID != c.id:
		return nil, malformed("token: it is about another reservation")
	case c.sale != "" && c.sale != claims.Sale:
		return nil, malformed("token: it is about another sale")
	case !sale.IsID(claims.Sale):
		return nil, malformed("token: its sale is no id of a sale")
	}
	c.sale = claims.Sale
	return claims, nil
}

// tokenFault says why a token is not accepted, without repeating any of it.
func tokenFault(err error) string {
	for _, known := range []error{token.ErrMalformed, token.ErrType, token.ErrAlgorithm, token.ErrUnknownKey, token.ErrSignature, token.ErrIssuer, token.ErrAudience} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "it cannot be verified"
}
