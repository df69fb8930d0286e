package judge

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// KnowsNames reports placeholders of a question that this gate cannot fill in.
func (j *Judge) KnowsNames(what string, i *inquiry.Inquiry) error {
	return j.filters.KnowsNames(what, i)
}

// Told returns the values of a question that are known of an attempt with this ref.
func (p *Case) Told(i *inquiry.Inquiry, ref string) map[string]string {
	values := i.Told(map[string][]byte{"jwt": p.Claims, "lookup": p.Document})
	values["ref"] = ref
	return values
}

// recallCart returns what the edge remembers of the attempt's cart; nil: the shop is to be asked.
func (j *Judge) recallCart(r *http.Request, p *Case) []byte {
	if p.dryRun() {
		return nil
	}
	return j.carts.Recall(p.Keys, p.question(r), time.Now())
}

// ForgetCart forgets the cart of an attempt that goes to the shop, which may change it.
func (j *Judge) ForgetCart(p *Case) { j.carts.Forget(p.Keys) }

// question stands for what the shop is asked about the attempt.
func (p *Case) question(r *http.Request) uint64 {
	return inquiry.Question(r, p.reading.Early.Ref, p.Claims)
}

// ReadCart reads what the attempt is about from what the edge remembers of its cart; nil: from what the
// shop says.
func (j *Judge) ReadCart(r *http.Request, p *Case, remembered []byte) (no *sale.Refusal) {
	p.Cart = Cart{room: p.reading.Early, Document: remembered, Remembered: remembered != nil}
	p.Attempt = &p.room
	var took time.Duration
	var unnamed, unread string
	if remembered == nil {
		if took, unnamed, no = j.lookUpAlone(r, p); no != nil {
			return no
		}
	}
	if p.room, no, unread = p.reading.ReadCart(p.Document); no == nil && unnamed != "" {
		no, unread = refuse.Unavailable, unnamed
	}
	no = j.readLines(p, no, unread, took)
	if j.passesOthers() {
		j.dropUnlisted(p.Attempt)
	}
	return no
}

// lookUpCart asks the shop for the cart of a request, and returns how long that took.
func (j *Judge) lookUpCart(r *http.Request, p *Case) (took time.Duration, no *sale.Refusal) {
	began := time.Now()
	ref := ""
	if p.Attempt != nil { // else it is no attempt
		ref = p.Attempt.Ref
	}
	values := p.Told(j.filters.Lookup, ref)
	answer, err := p.asks(j.filters.Lookup).Ask(r.Context(), inquiry.BuyerOf(r), func(name string) string { return values[name] })
	no, why := inquiry.Refusal(r.Context(), answer, err, j.filters.Operations != nil && j.filters.Operations.ReadsGraphQL())
	if why != "" {
		no = j.unanswered(why)
	}
	if errors.Is(err, inquiry.ErrNoValue) && j.filters.Lookup.ByRef() && !slices.ContainsFunc(j.filters.Lookup.Names(), func(name string) bool { return name != "ref" && values[name] == "" }) {
		no = sale.Refuse(sale.NoCart) // there is no cart of this name
	}
	took = max(time.Since(began), 1)
	if no != nil {
		meter.CountLookup(string(no.Reason), took)
		return took, no
	}
	if p.Document = answer.Body; p.Scope == scope.Attempt && !p.dryRun() {
		j.carts.Remember(p.Keys, p.question(r), answer.Body, time.Now())
	}
	return took, nil
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
	if j.isStranger(r, p) {
		no = sale.Refuse(sale.NoBuyer)
	}
	return no, false
}

// isStranger reports whether a request has no credential by which the shop knows its cart.
func (j *Judge) isStranger(r *http.Request, p *Case) bool {
	return len(p.Keys) == 0 && (j.filters.Credentials.InRequest() || !inquiry.HasCredential(r))
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

// readLines counts a lookup that the shop has answered, and says in the log where the answer is no cart.
// no is the refusal of the attempt that was read from it, unread the fault in it, and took how long the
// lookup took; 0: it is remembered. An operator who tries a request is told the fault.
func (j *Judge) readLines(p *Case, no *sale.Refusal, unread string, took time.Duration) *sale.Refusal {
	word := "answered"
	switch {
	case unread != "" && no.Reason == sale.Unavailable:
		word, no = string(no.Reason), j.unanswered(unread)
		if p.Purpose == Trying {
			no = &sale.Refusal{Reason: no.Reason, Detail: attempt.UnreadLookup + ": " + unread}
		}
	case no != nil && no.Reason == sale.NoCart:
		word = string(no.Reason)
	}
	if took == 0 {
		return no
	}
	if meter.CountLookup(word, took); word != string(sale.Unavailable) {
		j.heard.Heard(j.log, j.filters.Lookup.Host(), unread)
	}
	return no
}

// unanswered refuses an attempt because the shop did not say what it is about.
func (j *Judge) unanswered(why string) *sale.Refusal {
	j.heard.Lost(j.log, j.filters.Lookup.Host(), why)
	return refuse.Unavailable
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
