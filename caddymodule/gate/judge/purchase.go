package judge

import (
	"cmp"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/cart"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// Case is an attempt on its way through the gate, and what is known of it so far: one struct for
// each stage.
type Case struct {
	Visit
	Requested
	Cart
	Judged
}

// Visit is known when the request comes.
type Visit struct {
	Purpose Purpose
	Repl    *caddy.Replacer
	Out     http.Header // the answer's
	// clean: the request has no header that a gate removes.
	clean bool
	// Began is when the request came to the gate.
	Began time.Time
	// AsOf is when the order was read before; zero: it is read for the first time, and its bearer token
	// must be valid now.
	AsOf time.Time
	// Texts are the values of a request in shadow that only Caddy's replacer knows.
	Texts map[string]string
	// Earlier tells what earlier orders have left; nil: the judge only checks.
	Earlier Earlier
}

// Purpose is what an attempt is judged for.
type Purpose uint8

const (
	Serving  Purpose = iota // its client gets the answer
	Watching                // it is in shadow: the shop has answered, and only rates count it
	Trying                  // an operator asks what would happen: nothing counts it
	Sending                 // its order has waited, and its turn has come
)

// dryRun reports whether nothing may come of the attempt.
func (v *Visit) dryRun() bool { return v.Purpose == Watching || v.Purpose == Trying }

// Requested is what the request alone says.
type Requested struct {
	// Scope reports whether the request is an attempt at all. If it is not, nothing of the
	// following is known.
	Scope scope.Verdict
	// operation has the arguments of an attempt by GraphQL.
	operation scope.Judgement
	Body      []byte
	// Claims has the claims of the buyer's token; nil: the gate reads none.
	Claims []byte
	// reading is for the cart; nil: the request says all.
	reading *attempt.Reading
	// Session has the credentials of the attempt, and its turn.
	cart.Session
}

// Cart is what the attempt is about.
type Cart struct {
	Attempt *sale.Attempt // before the cart is read, without lines
	room    sale.Attempt  // of attempt, unless it is elsewhere
	// Document is what the shop said about the cart; nil: it was not asked.
	Document []byte
	// Remembered: the edge remembers the document.
	Remembered bool
}

// Judged is what the rules have found.
type Judged struct {
	Runtime *edgeruntime.Runtime // nil: the edge cannot sell
	Listing *edge.Listing
	Lines   []sale.Line
	// Unlisted: no sale lists an item of the attempt, and the gate lets such attempts pass.
	Unlisted bool
	// InPlaceOf is the hold of the same ref, in the sale HeldIn, whose place the attempt takes;
	// empty: none.
	InPlaceOf, HeldIn string
	// Recheck is the permission to ask Redis about units that are remembered to be gone; nil:
	// none is needed.
	Recheck *edge.Recheck
}

// Named reports whether the attempt has an idempotency key or a ref, and so may repeat an
// earlier one.
func (p *Case) Named() bool { return p.Attempt.Key != "" || p.Attempt.Ref != "" }

// Swapped is the hold whose place the attempt takes in the sale that was chosen for it; empty: none.
func (p *Case) Swapped() string {
	if p.HeldIn != p.SaleID() {
		return ""
	}
	return p.InPlaceOf
}

// SaleID returns the id of the attempt's sale, empty if none was found.
func (p *Case) SaleID() string {
	if p.Listing == nil {
		return ""
	}
	return p.Listing.Sale.ID
}

// Candidates returns the sales in which an attempt may have been made before, including
// ended and closed ones.
func Candidates(c *edge.Catalogue, a *sale.Attempt) []*edge.Listing {
	if a.Sale == "" {
		return c.Listing(a.Lines[0].SKU)
	}
	if l, ok := c.Sale(a.Sale); ok {
		return []*edge.Listing{l}
	}
	return nil
}

// LinesIn returns the attempt's lines as the sale would hold them, even if it would not
// today: its bounds may have changed since.
func LinesIn(s *sale.Sale, a *sale.Attempt) []sale.Line {
	if lines, no := s.Resolve(a); no == nil {
		return lines
	}
	lines := make([]sale.Line, len(a.Lines))
	for i, l := range a.Lines {
		lines[i] = l
		item, ok := s.Item(l.SKU)
		if ok {
			lines[i].SKU = item.SKU
		}
		if !ok || len(item.Regions) == 0 {
			lines[i].Region = ""
		}
		if ok && item.IsBundle() {
			lines[i].Region = cmp.Or(l.Region, a.Region)
		}
	}
	return s.Unbundle(lines)
}

// Publish sets the placeholders of an attempt that has a reservation.
func (p *Case) Publish(r *http.Request, verdict, id string) {
	reply.Publish(r, p.Repl, reply.Placeholders{Verdict: verdict, Sale: p.SaleID(), Reservation: id, Ref: p.Attempt.Ref})
}
