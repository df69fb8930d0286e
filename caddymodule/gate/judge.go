package gate

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/scope"
)

// consider reads the attempt and judges it. It refuses all that can be refused without a reservation,
// for every gate and for dry runs. The error is that of reading the body.
func (g *Gate) consider(r *http.Request, p *purchase) (*sale.Refusal, error) {
	if no, err := g.inScope(r, p); no != nil || err != nil || p.scope != scope.Attempt {
		return no, err
	}
	if no, err := g.read(r, p); no != nil || err != nil {
		return no, err
	}
	no := g.filter(r, p)
	if no != nil || !p.remembered { // only refusals come from what is remembered
		return no, nil
	}
	p.judged = judged{}
	if no := g.readAgain(r, p); no != nil {
		return no, nil
	}
	return g.filter(r, p), nil
}

// filter judges an attempt that was read.
func (g *Gate) filter(r *http.Request, p *purchase) *sale.Refusal {
	_, filtering := span.Start(r.Context(), span.Filter)
	defer filtering.End()
	return g.walk(r, p, g.judging.rest)
}

// The gates that have a rule. A gate without lists, rates or a challenge has none to ask.

func (g *Gate) denies() bool       { return len(g.Deny) > 0 }
func (g *Gate) counts() bool       { return !g.rates.IsEmpty() }
func (g *Gate) challenges() bool   { return g.challenge.Challenger != nil }
func (g *Gate) takesTurns() bool   { return g.credentials != nil }
func (g *Gate) looksUp() bool      { return g.lookup != nil }
func (g *Gate) countsShared() bool { return g.rates.HasShared() && !g.looksUp() }
func (g *Gate) passesOthers() bool { return g.OtherItems == "pass" }
func (g *Gate) sells() bool        { return !g.Check }

// denied refuses those who are on a denylist.
func (g *Gate) denied(r *http.Request, p *purchase) (*sale.Refusal, bool) {
	return g.lists.Denied(r, p.attempt, g.log), false
}

// takeRates counts the attempt for the rates of this edge that are not late.
func (g *Gate) takeRates(_ *http.Request, p *purchase) (*sale.Refusal, bool) {
	return g.rates.TakeLocal(p.out, p.attempt, time.Now()), false
}

// takeShared counts the attempt for the shared rates, once. What may pass although Redis is not asked
// passes uncounted.
func (g *Gate) takeShared(r *http.Request, p *purchase) (*sale.Refusal, bool) {
	if p.runtime == nil {
		return nil, false
	}
	no := g.rates.TakeShared(r, p.out, p.runtime, p.attempt, g.log)
	if no != nil && no.Reason == sale.Unavailable && g.mayPass(p) {
		return nil, false
	}
	return no, false
}

// takeLate counts the attempt for the late rates. One that asks whether units are still gone does so for
// all others too, and what is remembered of a cart is judged again.
func (g *Gate) takeLate(_ *http.Request, p *purchase) (*sale.Refusal, bool) {
	if p.remembered || p.ask != nil {
		return nil, false
	}
	return g.rates.TakeLate(p.out, p.attempt, p.now()), false
}

// reached finds the edge runtime. Unlisted items need no Redis: without it they pass.
func (g *Gate) reached(r *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	if p.runtime = g.openRuntime(r, p.dryRun()); p.runtime != nil {
		return nil, false
	}
	if p.unlisted = g.isUnlisted(p.attempt); p.unlisted {
		return nil, true
	}
	return refuse.Unavailable, false
}

// passUnlisted lets an attempt pass whose items no sale lists.
func (g *Gate) passUnlisted(_ *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	p.unlisted = g.isUnlisted(p.attempt)
	return nil, p.unlisted
}

// mayPass reports whether the attempt may have no item of a sale, as far as it is known, and so passes.
func (g *Gate) mayPass(p *purchase) bool {
	if len(p.attempt.Lines) == 0 { // the cart was not looked up
		return g.passesOthers()
	}
	return g.isUnlisted(p.attempt)
}

// chooseSale finds the attempt's sale, and applies its state and the allowlists.
func (g *Gate) chooseSale(r *http.Request, p *purchase) (*sale.Refusal, bool) {
	return g.chooseSaleAt(r, p, p.now()), false
}

func (g *Gate) chooseSaleAt(r *http.Request, p *purchase, now time.Time) (no *sale.Refusal) {
	catalogue := p.runtime.Catalogue()
	p.listing, p.lines, no = filters.Choose(p.attempt, now, catalogue.Sale, catalogue.Listing)
	if no != nil && no.Reason == sale.UnknownItem && !catalogue.Complete() {
		no = refuse.Unavailable // a sale that this edge cannot read may list it
	}
	return g.lists.Eligible(r, p.attempt, no, g.log)
}

// now is the moment at which the attempt is judged: in shadow, when it came.
func (p *purchase) now() time.Time {
	if p.purpose == watching {
		return p.began
	}
	return time.Now()
}

// unitsGone refuses units that are known to be gone. Only an attempt that goes on to reserve may ask
// Redis whether they are still gone.
func (g *Gate) unitsGone(_ *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	switch {
	case p.swapped() != "": // units that are gone for others may be its own
	case g.Check || p.dryRun() || p.remembered:
		no = p.runtime.Recall(p.listing, p.lines)
	default:
		no, p.ask = p.runtime.Remembered(p.listing, p.lines)
	}
	return no, false
}

// isUnlisted reports whether no sale lists an item of the attempt and the gate lets such
// attempts pass. It returns false if the lists of the sales are unknown.
func (g *Gate) isUnlisted(a *sale.Attempt) bool {
	return g.passesOthers() && g.app.IsOther(a)
}

// openRuntime returns the edge runtime if it may sell now. A dry run sells nothing.
func (g *Gate) openRuntime(r *http.Request, dryRun bool) *edgeruntime.Runtime {
	d := g.app.Runtime()
	if d == nil || d.Ready() != nil {
		return nil
	}
	if d.IsLocal() && !dryRun && !fromThisMachine(r) {
		if c := g.log.Check(zap.WarnLevel, "not selling: `redis embedded` is for trying things out on this machine; configure a redis"); c != nil {
			c.Write()
		}
		return nil
	}
	return d
}

// fromThisMachine reports whether the request came to a loopback address.
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
