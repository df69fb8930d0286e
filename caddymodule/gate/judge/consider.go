package judge

import (
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/sale"
)

// Consider reads the attempt and judges it. It refuses all that can be refused without a reservation,
// for every gate and for dry runs. The error comes from reading the body.
func (j *Judge) Consider(r *http.Request, p *Case) (*sale.Refusal, error) {
	if no, err := j.InScope(r, p); no != nil || err != nil || p.Scope != scope.Attempt {
		return no, err
	}
	if no, err := j.Read(r, p); no != nil || err != nil {
		return no, err
	}
	no := j.filter(r, p)
	if no != nil || !p.Remembered { // a remembered cart is good for refusals only
		return no, nil
	}
	p.Judged = Judged{}
	if p.Earlier != nil {
		p.Earlier.Forget()
	}
	if no := j.readAgain(r, p); no != nil {
		return no, nil
	}
	return j.filter(r, p), nil
}

// filter judges an attempt that was read.
func (j *Judge) filter(r *http.Request, p *Case) *sale.Refusal {
	_, filtering := span.Start(r.Context(), span.Filter)
	defer filtering.End()
	return j.walk(r, p, j.rules.rest)
}

// Which judges have a rule.

func (j *Judge) denies() bool       { return len(j.Deny) > 0 }
func (j *Judge) counts() bool       { return !j.filters.Rates.IsEmpty() }
func (j *Judge) challenges() bool   { return j.filters.Challenge.Challenger != nil }
func (j *Judge) TakesTurns() bool   { return j.filters.Credentials != nil }
func (j *Judge) looksUp() bool      { return j.filters.Lookup != nil }
func (j *Judge) countsShared() bool { return j.filters.Rates.HasShared() && !j.looksUp() }
func (j *Judge) passesOthers() bool { return j.OtherItems == "pass" }
func (j *Judge) sells() bool        { return !j.OnlyChecks() }

// denied refuses attempts on a denylist.
func (j *Judge) denied(r *http.Request, p *Case) (*sale.Refusal, bool) {
	return j.filters.Lists.Denied(r, p.Attempt, j.log), false
}

// takeRates counts the attempt for the rates of this edge that are not late.
func (j *Judge) takeRates(_ *http.Request, p *Case) (*sale.Refusal, bool) {
	return j.filters.Rates.TakeLocal(p.Out, p.Attempt, time.Now()), false
}

// takeShared counts the attempt for the shared rates. An attempt that may pass without Redis passes
// uncounted.
func (j *Judge) takeShared(r *http.Request, p *Case) (*sale.Refusal, bool) {
	if p.Runtime == nil {
		return nil, false
	}
	no := j.filters.Rates.TakeShared(r, p.Out, p.Runtime, p.Attempt, j.log)
	if no != nil && no.Reason == sale.Unavailable && j.mayPass(p) {
		return nil, false
	}
	return no, false
}

// takeLate counts the attempt for the late rates. One that asks whether units are still gone does so for
// all others too, and an attempt with a remembered cart is judged again.
func (j *Judge) takeLate(_ *http.Request, p *Case) (*sale.Refusal, bool) {
	if p.Remembered || p.Recheck != nil {
		return nil, false
	}
	return j.filters.Rates.TakeLate(p.Out, p.Attempt, p.now()), false
}

// reached finds the edge runtime. Unlisted items need no Redis: without it they pass.
func (j *Judge) reached(r *http.Request, p *Case) (no *sale.Refusal, ends bool) {
	if p.Runtime = j.OpenRuntime(r, p.dryRun()); p.Runtime != nil {
		return nil, false
	}
	if p.Unlisted = j.isUnlisted(p.Attempt); p.Unlisted {
		return nil, true
	}
	return refuse.Unavailable, false
}

// passUnlisted lets an attempt pass whose items no sale lists.
func (j *Judge) passUnlisted(_ *http.Request, p *Case) (no *sale.Refusal, ends bool) {
	p.Unlisted = j.isUnlisted(p.Attempt)
	return nil, p.Unlisted
}

// mayPass reports whether the attempt may have no item of a sale, as far as it is known, and so passes.
func (j *Judge) mayPass(p *Case) bool {
	if len(p.Attempt.Lines) == 0 { // the cart was not looked up
		return j.passesOthers()
	}
	return j.isUnlisted(p.Attempt)
}

// repeats looks for what an earlier attempt has left, if the attempt has a key or a ref.
func (j *Judge) repeats(r *http.Request, p *Case) (no *sale.Refusal, ends bool) {
	if !p.Named() {
		return nil, false
	}
	return p.Earlier.Find(r)
}

// chooseSale finds the attempt's sale, and applies its state and the allowlists.
func (j *Judge) chooseSale(r *http.Request, p *Case) (*sale.Refusal, bool) {
	return j.chooseSaleAt(r, p, p.now()), false
}

func (j *Judge) chooseSaleAt(r *http.Request, p *Case, now time.Time) (no *sale.Refusal) {
	catalogue := p.Runtime.Catalogue()
	p.Listing, p.Lines, no = filters.Choose(p.Attempt, now, catalogue.Sale, catalogue.Listing)
	if no != nil && no.Reason == sale.UnknownItem && !catalogue.Complete() {
		no = refuse.Unavailable // a sale that this edge cannot read may list it
	}
	return j.filters.Lists.Eligible(r, p.Attempt, no, j.log)
}

// now is the moment at which the attempt is judged: in shadow, when it came.
func (p *Case) now() time.Time {
	if p.Purpose == Watching {
		return p.Began
	}
	return time.Now()
}

// unitsGone refuses units that are known to be gone. Only an attempt that goes on to reserve may ask
// Redis whether they are still gone.
func (j *Judge) unitsGone(_ *http.Request, p *Case) (no *sale.Refusal, ends bool) {
	switch {
	case j.Enters: // units that are gone are what the attempt waits for
	case p.Swapped() != "": // units that are gone for others may be its own
	case j.OnlyChecks() || p.dryRun() || p.Remembered:
		no = p.Runtime.Recall(p.Listing, p.Attempt, p.Lines)
	default:
		no, p.Recheck = p.Runtime.Remembered(p.Listing, p.Attempt, p.Lines)
	}
	return no, false
}

// outgrowsToken refuses an order whose token would be too large, before its stock is held. A remembered cart
// may have become smaller since: it is read again first.
func (j *Judge) outgrowsToken(_ *http.Request, p *Case) (no *sale.Refusal, ends bool) {
	if !p.Remembered && !j.App.Keys().Signer().Fits(p.Listing.Sale.ClaimsOf(p.Attempt, p.Lines)) {
		no = RefuseTooLong
	}
	return no, false
}

// isUnlisted reports whether no sale lists an item of the attempt and the gate lets such
// attempts pass. It returns false if the lists of the sales are unknown.
func (j *Judge) isUnlisted(a *sale.Attempt) bool {
	return j.passesOthers() && j.App.IsOther(a)
}
