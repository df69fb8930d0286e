package sending

import (
	"time"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/internal/sale"
)

// Takeoff is what becomes of an attempt that the rules let pass.
type Takeoff struct {
	Way Way
	// Forwarding takes the order to the shop, which may take as long as Timeout.
	Forwarding *forward.Forwarding
	Timeout    time.Duration
	Refusal    *sale.Refusal
}

// Way is one of the ways on which an attempt goes.
type Way uint8

const (
	IsRefused   Way = iota
	IsForwarded     // the shop is asked
	IsAnswered      // the client is told the place of its order, or what the shop answered to an earlier one
)

// Refused is the takeoff of an attempt that is refused.
func Refused(no *sale.Refusal) Takeoff { return Takeoff{Way: IsRefused, Refusal: no} }

// RefuseLeft answers a client that closed its own side of the connection and still reads: there is no order.
var RefuseLeft = &sale.Refusal{Reason: sale.Unavailable, Detail: "the connection was closed before stock was held"}

// inDoubtWait is in seconds: a doubt does not end by itself.
const inDoubtWait = 10

// InDoubt refuses an attempt whose order with that id is in doubt; empty: the id is not for this client.
func InDoubt(id string) *sale.Refusal {
	return &sale.Refusal{Reason: sale.InDoubt, RetryAfter: inDoubtWait, Reservation: id}
}
