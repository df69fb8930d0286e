package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

const (
	// Timeout bounds one request of the admin API.
	Timeout = 15 * time.Second
	// SmallBody bounds the body of a request that is not a sale file.
	SmallBody = 4 << 10
)

// Route makes a route of the admin endpoint. It finds the edge runtime and writes what handle
// returns as an HTTP response.
func Route(pattern string, handle func(*Operator, *http.Request) (any, error)) caddy.AdminRoute {
	return caddy.AdminRoute{Pattern: pattern, Handler: caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		o, err := Of(w, r)
		if o == nil {
			return err
		}
		// a change that has begun is finished, whether or not the client waits for it
		var cancel context.CancelFunc
		o.Ctx, cancel = context.WithTimeout(context.WithoutCancel(r.Context()), Timeout)
		defer cancel()
		answer, err := handle(o, r)
		if err != nil {
			return Refuse(w, err)
		}
		status := http.StatusOK
		if h, ok := answer.(adminapi.Health); ok && !h.Ready {
			status = http.StatusServiceUnavailable
		}
		return Write(w, status, answer)
	})}
}

// NotFound makes an error whose answer is that something does not exist.
func NotFound(err error) error { return notFoundError{err} }

// notFoundError says that something does not exist.
type notFoundError struct{ error }

func (e notFoundError) Unwrap() error { return e.error }

// apiError gives an error its status.
func apiError(err error) caddy.APIError {
	status := http.StatusInternalServerError
	var tooLarge *http.MaxBytesError
	var input request.Error
	var missing notFoundError
	var conflict *reservation.ConflictError
	var refund *reservation.RefundNeededError
	var early *reservation.TooSoonError
	var many *reservation.TooManyError
	message := err.Error()
	switch {
	case errors.As(err, &tooLarge):
		status = http.StatusRequestEntityTooLarge
		message = fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &input):
		status = http.StatusBadRequest
	case errors.As(err, &missing), errors.Is(err, shard.ErrNoSale), errors.Is(err, reservation.ErrNotFound):
		status = http.StatusNotFound
	case errors.As(err, &refund):
		status, message = http.StatusConflict, "refund_needed: "+message
	case errors.Is(err, shard.ErrRefused), errors.As(err, &conflict), errors.As(err, &early), errors.As(err, &many),
		errors.Is(err, reservation.ErrReused):
		status = http.StatusConflict
	case errors.Is(err, shard.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, shard.ErrStarting),
		errors.Is(err, ledger.ErrLedger), errors.Is(err, shard.ErrNewerSchema), errors.Is(err, shard.ErrMemoryPolicy):
		status = http.StatusServiceUnavailable
	}
	return caddy.APIError{HTTPStatus: status, Err: err, Message: message}
}
