package gate

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/caddymodule/operation"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/scope"
)

// consider reads the attempt and lets the filters judge it, from memory, in the order of
// the verdicts. It refuses all that can be refused without a reservation, for every gate
// and for dry runs. The error is that of reading the body.
func (g *Gate) consider(r *http.Request, p *purchase) (*sale.Refusal, error) {
	if no, err := g.inScope(r, p); no != nil || err != nil || p.scope != scope.Attempt {
		return no, err
	}
	no, err := g.readAndWeigh(r, p)
	if p.remembered && no == nil && err == nil { // only refusals come from what is remembered
		p.forgetCart()
		return g.readAndWeigh(r, p)
	}
	return no, err
}

func (g *Gate) readAndWeigh(r *http.Request, p *purchase) (*sale.Refusal, error) {
	if no, err := g.read(r, p); no != nil || err != nil {
		return no, err
	}
	return g.weigh(r, p), nil
}

// inScope finds out whether the request is an attempt. What is unclear is refused.
func (g *Gate) inScope(r *http.Request, p *purchase) (*sale.Refusal, error) {
	if g.onlyTurns() {
		p.scope = scope.Other
		return g.takeTurn(r, p), nil
	}
	if g.scope == nil {
		p.scope = scope.Attempt
		return nil, nil
	}
	body, no, err := g.reader.ReadBody(r)
	if err != nil || no != nil {
		return no, err
	}
	found := g.scope.Judge(r, body)
	switch p.scope = found.Verdict; found.Verdict {
	case scope.Attempt:
		p.operation = found
		operation.Publish(p.repl, found)
	case scope.Unclear:
		if !p.dryRun {
			operation.CountUnclear(found.Cause)
		}
		return &sale.Refusal{Reason: sale.Malformed, Detail: found.Cause.Detail()}, nil
	case scope.Other:
		if found.Mutates {
			return g.takeTurn(r, p), nil
		}
	}
	return nil, nil
}

// read reads the body and the attempt in it.
func (g *Gate) read(r *http.Request, p *purchase) (*sale.Refusal, error) {
	_, reading := span.Start(r.Context(), span.Read)
	defer reading.End()
	if no := g.reader.Check(r); no != nil {
		return no, nil
	}
	if !g.Check && !p.clean { // else the request goes on as it came
		attempt.StripMethodOverride(r.Header)
	}
	body, no, err := g.reader.ReadBody(r)
	if err != nil || no != nil {
		return no, err
	}
	p.body = body
	env := g.env(r, p.repl, p.dryRun)
	if p.shadow {
		env.Replace = func(text string) string { return p.texts[text] }
	}
	if env.Claims != nil && !p.asOf.IsZero() {
		env.Claims = func(token string) ([]byte, *sale.Refusal) { return g.bearer.ClaimsAt(r.Context(), token, nil, p.asOf) }
	}
	if verify := env.Claims; verify != nil && g.lookup != nil {
		env.Claims = func(token string) (claims []byte, no *sale.Refusal) {
			claims, no = verify(token)
			p.claims = claims
			return claims, no
		}
	}
	if g.lookup != nil {
		p.lookedUp, p.unread = 0, ""
		env.Lookup = func(early *sale.Attempt) ([]byte, *sale.Refusal) { return g.lookUpCart(r, p, early) }
		env.Unread = func(why string) { p.unread = why }
	}
	if g.reader.Needs().Has(attempt.NeedArgument) {
		env.Argument = p.operation.List
	}
	p.room, no = g.reader.Read(r, body, env)
	p.attempt = &p.room
	if g.lookup != nil {
		no = g.readCart(p, no)
	}
	if g.OtherItems == "pass" && (g.lookup != nil || g.Check && env.Argument != nil) {
		g.dropUnlisted(p.attempt)
	}
	if no == nil || no.Reason == sale.NoBuyer {
		g.notice(p)
	}
	return no, nil
}

// weigh lets the filters judge an attempt that was read, and looks for an earlier one.
func (g *Gate) weigh(r *http.Request, p *purchase) *sale.Refusal {
	_, filtering := span.Start(r.Context(), span.Filter)
	defer filtering.End()
	if no := g.entitled(r, p); no != nil {
		return no
	}
	if no := g.repeats(r, p); no != nil || p.bound != nil {
		return no
	}
	no := g.filter(r, p)
	if no == nil {
		return nil
	}
	if earlier := g.repeatsUnread(r, p, no); earlier != nil || p.bound != nil {
		delete(p.out, refuse.RateLimitHeader)
		delete(p.out, refuse.RatePolicyHeader)
		return earlier
	}
	return no
}

// entitled applies what judges an attempt before anything is asked about it, and waits for
// the other requests of its session.
func (g *Gate) entitled(r *http.Request, p *purchase) *sale.Refusal {
	if p.early {
		return g.lists.Denied(r, p.attempt, g.log) // the lookup may have said who buys
	}
	if no := g.local(r, p); no != nil {
		return no
	}
	if no := g.challenged(r, p); no != nil {
		return no
	}
	return g.takeTurn(r, p)
}

// local applies the denylists and the rates of this edge. They come before repeats: their
// refusals reveal nothing about an order, and a flood of repeats must cost neither Redis
// nor the shop anything, but for the lookup of a listed client in a list in Redis.
func (g *Gate) local(r *http.Request, p *purchase) *sale.Refusal {
	if no := g.lists.Denied(r, p.attempt, g.log); no != nil {
		return no
	}
	if !p.rates() || g.rates.IsEmpty() {
		return nil
	}
	return g.rates.TakeLocal(p.out, p.attempt, time.Now())
}

// filter judges an attempt that is not known to be a repeat. It counts shared rates last,
// so that a repeat costs one call to Redis and not two.
func (g *Gate) filter(r *http.Request, p *purchase) *sale.Refusal {
	if no := g.rated(r, p); no != nil || p.unlisted {
		return no
	}
	now := time.Now()
	if p.shadow {
		now = p.began
	}
	if no := g.judge(r, p, now); no != nil {
		return no
	}
	if p.swapped() == "" { // else units that are gone for others may be its own
		if no := g.remembered(p); no != nil {
			return no
		}
	}
	// An attempt that asks whether units are still gone does so for all others too.
	if !p.rates() || p.remembered || p.ask != nil {
		return nil
	}
	return g.rates.TakeLate(p.out, p.attempt, now)
}

// judge finds the attempt's sale, and applies the sale's state and the allowlists at this
// moment.
func (g *Gate) judge(r *http.Request, p *purchase, now time.Time) (no *sale.Refusal) {
	catalogue := p.runtime.Catalogue()
	p.listing, p.lines, no = filters.Choose(p.attempt, now, catalogue.Sale, catalogue.Listing)
	if no != nil && no.Reason == sale.UnknownItem && !catalogue.Complete() {
		no = refuse.Unavailable // a sale that this edge cannot read may list it
	}
	return g.lists.Eligible(r, p.attempt, no, g.log)
}

// remembered refuses units that are known to be gone. Only an attempt that goes on to
// reserve may ask Redis whether they are still gone.
func (g *Gate) remembered(p *purchase) (no *sale.Refusal) {
	if g.Check || p.dryRun || p.remembered {
		return p.runtime.Recall(p.listing, p.lines)
	}
	no, p.ask = p.runtime.Remembered(p.listing, p.lines)
	return no
}

// rated counts the attempt against the gate's shared rates and finds the edge runtime.
// Unlisted items need no Redis: without it they pass, uncounted.
func (g *Gate) rated(r *http.Request, p *purchase) *sale.Refusal {
	p.unlisted = g.isUnlisted(p.attempt)
	no := g.countShared(r, p)
	if p.unlisted && no != nil && no.Reason == sale.Unavailable {
		return nil
	}
	return no
}

// countShared counts the attempt against the gate's shared rates, once.
func (g *Gate) countShared(r *http.Request, p *purchase) *sale.Refusal {
	if p.runtime == nil && !p.unasked {
		p.runtime = g.openRuntime(r, p.dryRun)
	}
	if p.runtime == nil {
		return refuse.Unavailable
	}
	if !p.rates() || p.early {
		return nil
	}
	return g.rates.TakeShared(r, p.out, p.runtime, p.attempt, g.log)
}

// isUnlisted says whether no sale lists an item of the attempt and the gate lets such
// attempts pass. It returns false if the lists of the sales are unknown.
func (g *Gate) isUnlisted(a *sale.Attempt) bool {
	return g.OtherItems == "pass" && g.app.IsOther(a)
}

// openRuntime returns the edge runtime if it may sell now. A dry run sells nothing.
func (g *Gate) openRuntime(r *http.Request, trial bool) *edgeruntime.Runtime {
	d := g.app.Runtime()
	if d == nil || d.Ready() != nil {
		return nil
	}
	if d.IsLocal() && !trial && !fromThisMachine(r) {
		if c := g.log.Check(zap.WarnLevel, "not selling: `redis embedded` is for trying things out on this machine; configure a redis"); c != nil {
			c.Write()
		}
		return nil
	}
	return d
}

// fromThisMachine says whether the request came to a loopback address.
func fromThisMachine(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	ap, err := netip.ParseAddrPort(addr.String())
	return addr.Network() == "unix" || err == nil && ap.Addr().Unmap().IsLoopback()
}

var (
	refusePending   = sale.Refuse(sale.Pending)
	refuseKeyReused = sale.Refuse(sale.KeyReused)
	refuseTooLong   = &sale.Refusal{Reason: sale.Malformed, Detail: "the order has too many lines for one token"}
	// refuseLeft answers a client that closed its own side of the connection and still
	// reads: there is no order.
	refuseLeft = &sale.Refusal{Reason: sale.Unavailable, Detail: "the connection was closed before stock was held"}
)
