package gate

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// purchase is an attempt on its way through the gate, and what is known of it so far: one struct for
// each stage.
type purchase struct {
	visit
	sent
	cart
	judged
	order
}

// visit is known when the request comes.
type visit struct {
	purpose purpose
	repl    *caddy.Replacer
	out     http.Header // the answer's
	// clean: the request has no header that a gate removes.
	clean bool
	// began is when the request came to the gate.
	began time.Time
	// asOf is when the order was read before; zero: it is read for the first time, and its bearer token
	// must be valid now.
	asOf time.Time
	// texts are the values of a request in shadow that only Caddy's replacer knows.
	texts map[string]string
}

// purpose is what an attempt is judged for.
type purpose uint8

const (
	serving  purpose = iota // its client gets the answer
	watching                // it is in shadow: the shop has answered, and only rates count it
	trying                  // an operator asks what would happen: nothing counts it
	sending                 // its order has waited, and its turn has come
)

// dryRun reports whether nothing may come of the attempt.
func (v *visit) dryRun() bool { return v.purpose == watching || v.purpose == trying }

// sent is what the request alone says.
type sent struct {
	// scope reports whether the request is an attempt at all. If it is not, nothing of the
	// following is known.
	scope scope.Verdict
	// operation has the arguments of an attempt by GraphQL.
	operation scope.Judgement
	body      []byte
	// claims has the claims of the buyer's token; nil: the gate reads none.
	claims []byte
	// reading is for the cart; nil: the request says all.
	reading *attempt.Reading
	// keys are the credentials of the attempt's session; turn is what it has while it is the
	// only one of its session.
	keys []session.Key
	turn *session.Exclusion
}

// cart is what the attempt is about.
type cart struct {
	attempt *sale.Attempt // before the cart is read, without lines
	room    sale.Attempt  // of attempt, unless it is elsewhere
	// document is what the shop said about the cart; nil: it was not asked.
	document []byte
	// remembered: the edge remembers the document.
	remembered bool
}

// judged is what the rules have found.
type judged struct {
	runtime *edgeruntime.Runtime // nil: the edge cannot sell
	listing *edge.Listing
	lines   []sale.Line
	// unlisted: no sale lists an item of the attempt, and the gate lets such attempts pass.
	unlisted bool
	// unbound is a sale in which Redis has no reservation for the attempt; nil: none.
	unbound *edge.Listing
	// inPlaceOf is the hold of the same ref, in the sale heldIn, whose place the attempt takes;
	// empty: none.
	inPlaceOf, heldIn string
	// bound is the reservation that the attempt already has; nil: none. stored is what the
	// shop answered to it; nil: the shop is asked again.
	bound  *reservation.AlreadyBound
	stored *reservation.StoredAnswer
	// ticket names the attempt's order, which waits for the shop or is there; empty: the client
	// is to hear the answer itself. place is where that order is.
	ticket string
	place  queue.Place
	// ask is the permission to ask Redis about units that are remembered to be gone; nil:
	// none is needed.
	recheck *edge.Recheck
}

// order is an attempt whose stock is held.
type order struct {
	// waiter is told the turn of the order; nil: it does not wait.
	waiter *queue.Waiter
	// try is with which turn the order was sent; 0: at once.
	try int64
}

// named reports whether the attempt has an idempotency key or a ref, and so may repeat an
// earlier one.
func (p *purchase) named() bool { return p.attempt.Key != "" || p.attempt.Ref != "" }

// swapped is the hold whose place the attempt takes in the sale that was chosen for it; empty: none.
func (p *purchase) swapped() string {
	if p.heldIn != p.saleID() {
		return ""
	}
	return p.inPlaceOf
}

// saleID returns the id of the attempt's sale, empty if none was found.
func (p *purchase) saleID() string {
	if p.listing == nil {
		return ""
	}
	return p.listing.Sale.ID
}
