package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/inquiry"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/edge"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/outcome"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
)

// provisionLookup prepares lookup and one_at_a_time.
func (g *Gate) provisionLookup() (err error) {
	if g.credentials, err = g.OneAtATime.Compile(); err != nil {
		return err
	}
	reads := g.reader.Needs().Has(attempt.NeedLookup)
	switch {
	case g.Lookup == nil && reads:
		return errors.New("{lookup.…}: say what the shop is asked, such as `lookup GET http://shop:3000/cart`")
	case g.Lookup == nil:
		return nil
	case !reads:
		return errors.New("lookup: no value reads what the shop answers: write `lines {lookup.items} sku quantity`, or leave lookup out")
	case len(g.Idempotency) > 0:
		return errors.New("lookup and idempotency do not go together, because a cart that was sold is empty: name the order by `ref`")
	}
	if g.lookup, err = g.Lookup.Compile("the lookup", "jwt."); err != nil {
		return err
	}
	if err := g.knowsNames("the lookup", g.lookup); err != nil {
		return err
	}
	if g.lookup.ByRef() {
		ref, err := attempt.CompileAll(g.Ref...)
		if err != nil || len(g.Ref) == 0 || ref.Needs().Has(attempt.NeedLookup) {
			return errors.New("lookup: {ref} needs a ref that the request itself has, such as `ref {path.2}`")
		}
	}
	return nil
}

// knowsNames reports placeholders of a question that this gate cannot fill in.
func (g *Gate) knowsNames(what string, i *inquiry.Inquiry) error {
	for _, name := range i.Names() {
		switch {
		case strings.HasPrefix(name, "jwt.") && !g.reader.Needs().Has(attempt.NeedJWT):
			return fmt.Errorf("%s: {%s} needs jwt, and a value of the gate that reads a claim, such as buyer {jwt.sub}", what, name)
		case strings.HasPrefix(name, "lookup.") && g.lookup == nil:
			return fmt.Errorf("%s: {%s} needs a lookup", what, name)
		}
	}
	return nil
}

// told returns the values of a question that are known of an attempt with this ref.
func (p *purchase) told(i *inquiry.Inquiry, ref string) map[string]string {
	values := i.Told(map[string][]byte{"jwt": p.claims, "lookup": p.document})
	values["ref"] = ref
	return values
}

// recallCart returns what the edge remembers of the attempt's cart; nil: the shop is to be asked.
func (g *Gate) recallCart(r *http.Request, p *purchase) []byte {
	if p.dryRun() {
		return nil
	}
	return g.carts.Recall(p.keys, p.question(r), time.Now())
}

// question stands for what the shop is asked about the attempt.
func (p *purchase) question(r *http.Request) uint64 {
	return inquiry.Question(r, p.reading.Early.Ref, p.claims)
}

// readCart reads what the attempt is about from what the edge remembers of its cart; nil: from what the
// shop says.
func (g *Gate) readCart(r *http.Request, p *purchase, remembered []byte) (no *sale.Refusal) {
	p.cart = cart{room: p.reading.Early, document: remembered, remembered: remembered != nil}
	p.attempt = &p.room
	var took time.Duration
	if remembered == nil {
		if took, no = g.lookUpCart(r, p); no != nil {
			return no
		}
	}
	var unread string
	p.room, no, unread = p.reading.ReadCart(p.document)
	no = g.readLines(p, no, unread, took)
	if g.passesOthers() {
		g.dropUnlisted(p.attempt)
	}
	return no
}

// lookUpCart asks the shop what is in the attempt's cart, and returns how long that took.
func (g *Gate) lookUpCart(r *http.Request, p *purchase) (took time.Duration, no *sale.Refusal) {
	began := time.Now()
	values := p.told(g.lookup, p.attempt.Ref)
	answer, err := g.lookup.Ask(r.Context(), inquiry.BuyerOf(r), func(name string) string { return values[name] })
	no = g.readLookup(r.Context(), answer, err)
	if errors.Is(err, inquiry.ErrNoValue) && g.lookup.ByRef() && !slices.ContainsFunc(g.lookup.Names(), func(name string) bool { return name != "ref" && values[name] == "" }) {
		no = sale.Refuse(sale.NoCart) // there is no cart of this name
	}
	took = max(time.Since(began), 1)
	if no != nil {
		meter.CountLookup(string(no.Reason), took)
		return took, no
	}
	if p.document = answer.Body; !p.dryRun() {
		g.carts.Remember(p.keys, p.question(r), answer.Body, time.Now())
	}
	return took, nil
}

// reachedBeforeLookup finds the edge runtime. Without it the cart may still have no item of a sale.
func (g *Gate) reachedBeforeLookup(r *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	if p.runtime = g.openRuntime(r, p.dryRun()); p.runtime == nil && !g.passesOthers() {
		no = refuse.Unavailable
	}
	return no, false
}

// noneSells refuses an attempt when no sale sells anything.
func (g *Gate) noneSells(_ *http.Request, p *purchase) (*sale.Refusal, bool) {
	if g.passesOthers() {
		return nil, false
	}
	catalogue := p.runtime.Catalogue()
	no := filters.NoneSells(p.attempt.Sale, time.Now(), catalogue.Sale, catalogue.All)
	// A buyer who has bought must not hear that the sale has ended.
	if no != nil && catalogue.Complete() && (len(g.Ref) == 0 || no.Reason == sale.NotStarted && notBegun(catalogue)) {
		return no, false
	}
	return nil, false
}

// lacksCredentials refuses a request of no session: the shop would make one for a stranger.
func (g *Gate) lacksCredentials(r *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	if len(p.keys) == 0 && (g.credentials != nil || !inquiry.HasCredential(r)) {
		no = sale.Refuse(sale.NoBuyer)
	}
	return no, false
}

// notBegun says whether no sale has begun, so that no buyer has bought.
func notBegun(catalogue *edge.Catalogue) bool {
	for l := range catalogue.All {
		if no := l.RefusalAt(time.Now()); no == nil || no.Reason != sale.NotStarted {
			return false
		}
	}
	return true
}

// readLookup decides whether an answer says what an attempt is about.
func (g *Gate) readLookup(ctx context.Context, a *outcome.Reply, err error) *sale.Refusal {
	switch {
	case errors.Is(err, inquiry.ErrBusy):
		return refuse.Busy
	case errors.Is(err, inquiry.ErrNoValue):
		return sale.Refuse(sale.NoBuyer) // its token lacks a claim, or has one that no URL can have
	case err != nil && ctx.Err() != nil: // the client has left
		return refuse.Unavailable
	case err != nil:
		return g.unanswered(err.Error())
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
		return sale.Refuse(sale.NoBuyer)
	case a.Status == http.StatusNotFound:
		return sale.Refuse(sale.NoCart)
	case a.Status/100 != 2:
		return g.unanswered(fmt.Sprintf("status %d", a.Status))
	case !a.Whole:
		return g.unanswered("the answer is longer than 64 KiB")
	case g.failed(a.Body):
		return g.unanswered("the answer has errors")
	}
	return nil
}

// readLines counts a lookup that the shop has answered, and says in the log where the answer is no cart.
// no is the refusal of the attempt that was read from it, unread is what is wrong there, and took is how
// long the lookup took; 0: it is remembered. An operator who tries a request hears what is wrong.
func (g *Gate) readLines(p *purchase, no *sale.Refusal, unread string, took time.Duration) *sale.Refusal {
	word := "answered"
	switch {
	case unread != "" && no.Reason == sale.Unavailable:
		word, no = string(no.Reason), g.unanswered(unread)
		if p.purpose == trying {
			no = &sale.Refusal{Reason: no.Reason, Detail: attempt.UnreadLookup + ": " + unread}
		}
	case no != nil && no.Reason == sale.NoCart:
		word = string(no.Reason)
	}
	if took == 0 {
		return no
	}
	if meter.CountLookup(word, took); word != string(sale.Unavailable) {
		g.heard.Heard(g.log, g.lookup.Host(), unread)
	}
	return no
}

// failed says whether a server of GraphQL has answered with errors, which have the status 200.
func (g *Gate) failed(body []byte) bool {
	if g.scope == nil || !g.scope.ReadsGraphQL() {
		return false
	}
	var answer struct {
		Errors []json.RawMessage `json:"errors"`
	}
	return json.Unmarshal(body, &answer) == nil && len(answer.Errors) > 0
}

// unanswered refuses an attempt because the shop did not say what it is about.
func (g *Gate) unanswered(why string) *sale.Refusal {
	g.heard.Lost(g.log, g.lookup.Host(), why)
	return refuse.Unavailable
}

// dropUnlisted leaves out the lines of a cart that no sale lists: they need no reservation, and a
// check makes none. A cart that has only such lines keeps them.
func (g *Gate) dropUnlisted(a *sale.Attempt) {
	listed := make([]sale.Line, 0, len(a.Lines))
	for _, l := range a.Lines {
		if !g.app.IsOther(&sale.Attempt{Lines: []sale.Line{l}}) {
			listed = append(listed, l)
		}
	}
	if len(listed) > 0 {
		a.Lines = listed
	}
}
