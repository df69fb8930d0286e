package judge

import (
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/cart"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// visitor is what the clerk is told of the attempt.
func (p *Case) visitor() cart.Visitor {
	v := cart.Visitor{
		Session: &p.Session, Repl: p.Repl, IsAttempt: p.Scope == scope.Attempt, DryRun: p.dryRun(), HasWaited: p.Purpose == Sending,
		Claims: p.Claims,
	}
	if p.reading != nil {
		v.Ref = p.reading.Early.Ref
	}
	return v
}

// Documents are the claims of the buyer's token and what the shop said about the cart, by the first step of the names
// of values.
func (p *Case) Documents() map[string][]byte {
	return map[string][]byte{"jwt": p.Claims, "lookup": p.Document}
}

// Clerk finds the carts of the judge's attempts.
func (j *Judge) Clerk() *cart.Clerk { return &j.clerk }

// ForgetCart forgets the cart of an attempt that goes to the shop, which may change it.
func (j *Judge) ForgetCart(p *Case) { j.clerk.Forget(&p.Session) }

// TakeTurn waits until no other request of the attempt's session is at the shop.
func (j *Judge) TakeTurn(r *http.Request, p *Case) (no *sale.Refusal, ends bool) {
	return j.clerk.TakeTurn(r, p.visitor()), false
}

// ReadCart reads what the attempt is about from what the edge remembers of its cart; nil: from what the
// shop says.
func (j *Judge) ReadCart(r *http.Request, p *Case, remembered []byte) (no *sale.Refusal) {
	p.Cart = Cart{room: p.reading.Early, Remembered: remembered != nil}
	p.Attempt = &p.room
	told := cart.Contents{Document: remembered}
	if remembered == nil {
		if told, no = j.clerk.LookUp(r, p.visitor()); no != nil {
			return no
		}
	}
	p.Document = told.Document
	var unread string
	if p.room, no, unread = p.reading.ReadCart(p.Document); no == nil && told.Unnamed != "" {
		no, unread = refuse.Unavailable, told.Unnamed
	}
	no = j.readLines(p, no, unread, told)
	if j.passesOthers() {
		j.dropUnlisted(p.Attempt)
	}
	return no
}

// reachedBeforeLookup finds the edge runtime. Without it the cart may still have no item of a sale.
func (j *Judge) reachedBeforeLookup(r *http.Request, p *Case) (no *sale.Refusal, ends bool) {
	if p.Runtime = j.OpenRuntime(r, p.dryRun()); p.Runtime == nil && !j.passesOthers() {
		no = refuse.Unavailable
	}
	return no, false
}

// noneSells refuses an attempt when no sale sells anything.
func (j *Judge) noneSells(_ *http.Request, p *Case) (*sale.Refusal, bool) {
	if j.passesOthers() {
		return nil, false
	}
	catalogue := p.Runtime.Catalogue()
	no := filters.NoneSells(p.Attempt.Sale, time.Now(), catalogue.Sale, catalogue.All)
	// A buyer who has bought must not hear that the sale has ended.
	if no != nil && catalogue.Complete() && (len(j.Ref) == 0 || no.Reason == sale.NotStarted && notBegun(catalogue)) {
		return no, false
	}
	return nil, false
}

// lacksCredentials refuses a request of no session: the shop would make one for a stranger.
func (j *Judge) lacksCredentials(r *http.Request, p *Case) (no *sale.Refusal, ends bool) {
	if j.clerk.IsStranger(r, &p.Session) {
		no = sale.Refuse(sale.NoBuyer)
	}
	return no, false
}

// notBegun reports whether no sale has begun, so that no buyer has bought.
func notBegun(catalogue *edge.Catalogue) bool {
	for l := range catalogue.All {
		if no := l.RefusalAt(time.Now()); no == nil || no.Reason != sale.NotStarted {
			return false
		}
	}
	return true
}

// readLines counts a lookup that the shop has answered. no is the refusal of the attempt that was read from it, and
// unread the fault in it. An operator who tries a request is told the fault.
func (j *Judge) readLines(p *Case, no *sale.Refusal, unread string, told cart.Contents) *sale.Refusal {
	word := "answered"
	switch {
	case unread != "" && no.Reason == sale.Unavailable:
		word, no = string(no.Reason), j.clerk.Unanswered(unread)
		if p.Purpose == Trying {
			no = &sale.Refusal{Reason: no.Reason, Detail: attempt.UnreadLookup + ": " + unread}
		}
	case no != nil && no.Reason == sale.NoCart:
		word = string(no.Reason)
	}
	if told.Took > 0 {
		j.clerk.Count(told, word, unread)
	}
	return no
}

// dropUnlisted leaves out the lines of a cart that no sale lists: they need no reservation, and a
// check makes none. A cart that has only such lines keeps them.
func (j *Judge) dropUnlisted(a *sale.Attempt) {
	listed := make([]sale.Line, 0, len(a.Lines))
	for _, l := range a.Lines {
		if !j.App.IsOther(&sale.Attempt{Lines: []sale.Line{l}}) {
			listed = append(listed, l)
		}
	}
	if len(listed) > 0 {
		a.Lines = listed
	}
}
