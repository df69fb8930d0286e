package shopapi

import (
	"net/http"

	"github.com/stockgate/stockgate/internal/store/reservation"
)

// APIRead is what the shop's API reads from a request.
type APIRead struct {
	Operation, ID, Sale, Token, Cause string
	HoldFor                           int64 // ns
	Returned                          reservation.Return
}

// ReadAPI reads a request without a key.
func ReadAPI(r *http.Request) (APIRead, error) {
	c, err := apiRoute(r)
	if err == nil {
		err = c.read(r)
	}
	return APIRead{c.operation, c.id, c.sale, c.token, c.cause, int64(c.holdFor), c.returned}, err
}
