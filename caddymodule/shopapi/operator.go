package shopapi

import (
	"errors"
	"time"

	"github.com/stockgate/stockgate/internal/store/reservation"
)

// operatorFields are the fields that an operator's body may have, by operation: fewer than the
// shop's, because the path names the reservation and no token is needed.
var operatorFields = map[string][]string{
	"extend": {"hold_for"},
	"return": {"id", "lines", "restock"},
}

// ReadReturn reads the body of a return that an operator sends. The error says what is wrong
// with it.
func ReadReturn(body []byte) (reservation.Return, error) {
	c, err := readOperator("return", body)
	return c.returned, err
}

// ReadExtension reads the body with which an operator extends a hold.
func ReadExtension(body []byte) (holdFor time.Duration, err error) {
	c, err := readOperator("extend", body)
	return c.holdFor, err
}

func readOperator(operation string, body []byte) (*apiCall, error) {
	c := &apiCall{operation: operation}
	no := c.readFields(body, operatorFields[operation])
	if no == nil {
		no = c.complete()
	}
	if no != nil {
		return c, errors.New(no.Detail)
	}
	return c, nil
}
