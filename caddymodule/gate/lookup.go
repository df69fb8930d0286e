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

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/inquiry"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/session"
	"github.com/stockgate/stockgate/edge"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/outcome"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/scope"
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
	values := i.Told(map[string][]byte{"jwt": p.claims, "lookup": p.cart})
	values["ref"] = ref
	return values
}

// lookUpCart returns what the shop says an attempt is about. early is what the request alone
// says.
func (g *Gate) lookUpCart(r *http.Request, p *purchase, early *sale.Attempt) ([]byte, *sale.Refusal) {
	if !p.early {
		p.attempt = early
		if no := g.beforeLookup(r, p); no != nil {
			return nil, no
		}
		p.early = true
	}
	question := inquiry.Question(r, early.Ref, p.claims)
	if !p.anew && !p.dryRun {
		if document := g.carts.Recall(p.keys, question, time.Now()); document != nil {
			p.remembered = true
			return document, nil
		}
	}
	began := time.Now()
	values := p.told(g.lookup, early.Ref)
	answer, err := g.lookup.Ask(r.Context(), inquiry.BuyerOf(r), func(name string) string { return values[name] })
	no := g.readLookup(r.Context(), answer, err)
	if errors.Is(err, inquiry.ErrNoValue) && g.lookup.ByRef() && !slices.ContainsFunc(g.lookup.Names(), func(name string) bool { return name != "ref" && values[name] == "" }) {
		no = sale.Refuse(sale.NoCart) // there is no cart of this name
	}
	took := max(time.Since(began), 1)
	if no != nil {
		meter.CountLookup(string(no.Reason), took)
		return nil, no
	}
	p.lookedUp = took
	if p.cart = answer.Body; !p.dryRun {
		g.carts.Remember(p.keys, question, answer.Body, time.Now())
	}
	return answer.Body, nil
}

// beforeLookup judges an attempt by all that is known before the lookup: no flood of attempts
// may reach the shop.
func (g *Gate) beforeLookup(r *http.Request, p *purchase) *sale.Refusal {
	if no := g.entitled(r, p); no != nil {
		return no
	}
	no := g.countShared(r, p)
	switch {
	case no != nil && no.Reason == sale.Unavailable && g.OtherItems == "pass":
		no = nil // the cart may have none of the items
	case no != nil:
		return no
	}
	if p.runtime != nil && g.OtherItems != "pass" {
		catalogue := p.runtime.Catalogue()
		no := filters.NoneSells(p.attempt.Sale, time.Now(), catalogue.Sale, catalogue.All)
		// A buyer who has bought must not hear that the sale has ended.
		if no != nil && catalogue.Complete() && (len(g.Ref) == 0 || no.Reason == sale.NotStarted && notBegun(catalogue)) {
			return no
		}
	}
	if len(p.keys) == 0 && (g.credentials != nil || !inquiry.HasCredential(r)) {
		return sale.Refuse(sale.NoBuyer) // the shop would make a session for a stranger
	}
	return nil
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

// readCart counts the lookup that the shop has answered, if there was one, and says in the log
// where the answer is no cart. no is the refusal of the attempt that was read from it. An
// operator who tries a request hears what is wrong.
func (g *Gate) readCart(p *purchase, no *sale.Refusal) *sale.Refusal {
	word := "answered"
	switch {
	case p.unread != "" && no.Reason == sale.Unavailable:
		word, no = string(no.Reason), g.unanswered(p.unread)
		if p.dryRun {
			no = &sale.Refusal{Reason: no.Reason, Detail: attempt.UnreadLookup + ": " + p.unread}
		}
	case no != nil && no.Reason == sale.NoCart:
		word = string(no.Reason)
	}
	if p.lookedUp == 0 {
		return no
	}
	if meter.CountLookup(word, p.lookedUp); word != string(sale.Unavailable) {
		g.heard.Heard(g.log, g.lookup.Host(), p.unread)
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

// forgetCart undoes what was found with a cart that the edge remembers.
func (p *purchase) forgetCart() {
	p.ask.End()
	p.ask, p.bound, p.stored, p.unbound, p.listing, p.lines = nil, nil, nil, nil, nil, nil
	p.unlisted, p.remembered, p.anew = false, false, true
	p.inPlaceOf, p.heldIn = "", ""
}

// turnVar is the variable of a request that has the credentials whose turn it has: another
// gate in its route must not wait for them.
const turnVar = "stockgate.turn"

// takeTurn waits until no other request of the session is at the shop.
func (g *Gate) takeTurn(r *http.Request, p *purchase) *sale.Refusal {
	if p.turn != nil || !g.credentials.MayChange(r) {
		return nil
	}
	var odd error
	p.keys, odd = g.credentials.Keys(r, p.repl)
	// a cart that is looked up must not change, whatever is excepted
	lookedUp := g.lookup != nil && p.scope == scope.Attempt
	if p.dryRun || !lookedUp && g.credentials.Excepts(r, g.guarded.AlsoQuery) {
		return nil
	}
	if odd != nil {
		return &sale.Refusal{Reason: sale.Malformed, Detail: odd.Error()}
	}
	held, _ := caddyhttp.GetVar(r.Context(), turnVar).([]session.Key)
	missing := slices.DeleteFunc(slices.Clone(p.keys), func(k session.Key) bool { return slices.Contains(held, k) })
	if len(missing) == 0 {
		return nil
	}
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	turn, shared, err := session.Take(r.Context(), missing, client, g.edges())
	if shared && session.WarnShared() {
		g.log.Warn("clients of several addresses wait for one credential of one_at_a_time: is it an API key of the shop, and not that of a session?",
			zap.Strings("credentials", g.OneAtATime.Credentials))
	}
	switch {
	case errors.Is(err, session.ErrPending):
		return refusePending
	case err != nil: // the client has left
		return refuse.Unavailable
	}
	p.turn = turn
	caddyhttp.SetVar(r.Context(), turnVar, append(slices.Clone(held), missing...))
	return nil
}

// edges is where the edges agree on turns; nil: this one alone has them.
func (g *Gate) edges() session.Edges {
	if !g.OneAtATime.Shared {
		return nil
	}
	if d := g.app.Runtime(); d != nil {
		return d
	}
	return session.NoEdges{}
}

// endTurn lets the next request of the session to the shop.
func (p *purchase) endTurn(r *http.Request) {
	if p.turn != nil {
		p.turn.End()
		caddyhttp.SetVar(r.Context(), turnVar, nil)
	}
}
