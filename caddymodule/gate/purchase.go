package gate

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/session"
	"github.com/stockgate/stockgate/edge"
	"github.com/stockgate/stockgate/queue"
	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/scope"
)

// purchase is an attempt on its way through the gate, and what is known of it so far.
type purchase struct {
	repl *caddy.Replacer
	out  http.Header // the answer's
	// clean: the request has no header that a gate removes.
	clean bool
	// dryRun: an operator asks what would happen. Nothing may be counted or charged.
	dryRun bool
	// asOf is when the order was read before; zero: it is read for the first time, and its bearer token
	// must be valid now.
	asOf time.Time
	// scope says whether the request is an attempt at all. If it is not, nothing of the
	// following is known.
	scope scope.Verdict
	// operation has the arguments of an attempt by GraphQL.
	operation scope.Result
	// began is when the request came to the gate.
	began time.Time
	// shadow: it is a dry run of a request in shadow, for which rates count. texts are its
	// values that only Caddy's replacer knows.
	shadow bool
	texts  map[string]string

	body    []byte
	attempt *sale.Attempt
	room    sale.Attempt // of attempt, unless it is elsewhere
	// unlisted: no sale lists an item of the attempt, and the gate lets such attempts pass.
	unlisted bool
	runtime  *edgeruntime.Runtime
	listing  *edge.Listing
	lines    []sale.Line

	// keys are the credentials of the attempt's session; turn is what it has while it is the
	// only one of its session.
	keys []session.Key
	turn *session.Turn
	// claims are those of the buyer's token, and cart is what the shop said about the cart; nil:
	// no question needs them.
	claims, cart []byte
	// lookedUp is how long the lookup of the cart took that the shop has answered; 0: there is
	// none. unread is why that answer does not say what is in the cart; empty: it does.
	lookedUp time.Duration
	unread   string
	// early: the lists, the rates and the challenge have judged it, before the lookup.
	early bool
	// remembered: the lookup's answer is one that the edge remembers; anew: it must not be.
	remembered, anew bool

	// unasked: Redis could not be asked whether the attempt is a repeat.
	unasked bool
	// unbound is a sale in which Redis has no reservation for the attempt; nil: none.
	unbound *edge.Listing
	// inPlaceOf is the hold of the same ref, in the sale heldIn, whose place the attempt takes;
	// empty: none.
	inPlaceOf, heldIn string
	// bound is the reservation that the attempt already has; nil: none. stored is what the
	// shop answered to it; nil: the shop is asked again.
	bound  *reservation.Bound
	stored *reservation.StoredAnswer
	// ticket names the attempt's order, which waits for the shop or is there; empty: the client
	// is to hear the answer itself. place is where that order is.
	ticket string
	place  queue.Place
	// waiter is told the turn of the attempt's order; nil: it does not wait.
	waiter *queue.Waiter
	// try is with which turn the order was sent; 0: at once.
	try int64
	// ask is the permission to ask Redis about units that are remembered to be gone; nil:
	// none is needed.
	ask *edge.Ask
}

// named says whether the attempt has an idempotency key or a ref, and so may repeat an
// earlier one.
func (p *purchase) named() bool { return p.attempt.Key != "" || p.attempt.Ref != "" }

// swapped is the hold whose place the attempt takes in the sale that was chosen for it; empty: none.
func (p *purchase) swapped() string {
	if p.heldIn != p.saleID() {
		return ""
	}
	return p.inPlaceOf
}

// rates says whether the attempt counts for the gate's rates.
func (p *purchase) rates() bool { return !p.dryRun || p.shadow }

// saleID returns the id of the attempt's sale, empty if none was found.
func (p *purchase) saleID() string {
	if p.listing == nil {
		return ""
	}
	return p.listing.Sale.ID
}
