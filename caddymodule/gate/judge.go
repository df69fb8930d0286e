package gate

import (
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/jwt"
	"github.com/stockgate/stockgate/caddymodule/gate/option/operation"
	"github.com/stockgate/stockgate/caddymodule/gate/option/pow"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/sale"
)

// Judge reads the attempts of one handler and judges them by the rules. A gate has one, and so has a
// stockgate_check.
type Judge struct {
	*AttemptOptions
	names
	// gate holds stock for the attempts that its judge lets pass; nil: a stockgate_check has the judge.
	gate *Gate

	app         *app.App
	ctx         caddy.Context // of the configuration
	log         *zap.Logger
	scope       *scope.Scope // nil: every request is an attempt
	reader      *attempt.Reader
	rules       ruleSet
	refuser     *refuse.Refuser
	lists       accesslist.DenyAllowLists
	rates       ratelimit.Set
	challenge   pow.Challenger
	lookup      *inquiry.Inquiry     // nil: the request says what it is about
	heard       inquiry.Hearing      // whether lookups get useful answers
	credentials *session.Credentials // nil: requests of a session do not wait
	carts       session.Carts
	// bearer verifies tokens; nil: there is no JWT. Requests in flight use it after Cleanup, which
	// closes it.
	bearer              *jwt.Verifier
	noBuyer, noQuantity silence // values that no attempt has
	noCartID            silence // of requests that are no attempt
	// server is the server that the handler belongs to; nil: none.
	server  *caddyhttp.Server
	around  around
	routes  guard.Routes
	guarded guard.Gate
	// enters: attempts enter a waiting list, by requests for entersAt; empty: that is not known.
	enters   bool
	entersAt string
	hosts    []string // of the routes around the handler
	// bypass is on while orders pass without a reservation.
	bypass *app.BypassSwitch
	// fastCounters has, for each reason, the counter of the sale that was first refused
	// fast.
	fastCounters []atomic.Pointer[refusals]
	// fastLogged is the share of the fast refusals that are logged.
	fastLogged accesslog.Share
}

// names are the options by which a gate recognises an earlier order, and asks what an attempt is about. A
// stockgate_check has only Lookup.
type names struct {
	Ref         []string
	RefShared   bool
	Continue    bool
	Idempotency []string
	Lookup      *inquiry.Spec
}

// Gate returns the gate that has the judge; nil: a stockgate_check has it.
func (j *Judge) Gate() *Gate { return j.gate }

// OnlyChecks reports whether a stockgate_check has the judge.
func (j *Judge) OnlyChecks() bool { return j.gate == nil }

// visit begins what a request is to the judge.
func (j *Judge) visit(w http.ResponseWriter, r *http.Request) visit {
	return visit{began: time.Now(), repl: r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer), out: w.Header()}
}

// meet reads and judges a request. over: it has got its answer, or next has served it.
func (j *Judge) meet(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p *purchase) (over bool, err error) {
	if p.clean = r.Trailer == nil && !attempt.AnyStrippable(r.Header); !p.clean {
		guard.StripReserved(r)
		attempt.StripH2C(r.Header)
	}
	if guard.PassageOf(r) == 0 { // no guard has asked
		if why, _, _ := j.routes.Refuses(r); why != "" {
			return true, j.refuse(w, r, "", p.began, &sale.Refusal{Reason: sale.Malformed, Detail: why})
		}
	}
	if r.Method == http.MethodOptions {
		return true, j.serveOptions(w, r, next, p.began)
	}
	switch no, err := j.consider(r, p); {
	case err != nil: // the client left or was too slow, or request_body has a lower limit
		reply.DropPayload(r)
		return true, caddyhttp.Error(http.StatusBadRequest, err)
	case no != nil:
		return true, j.refuse(w, r, p.saleID(), p.began, no)
	case p.scope == scope.Unknown:
		return true, operation.AskDocument(w)
	}
	return false, nil
}

// refuse answers and counts a refusal of an attempt that began at that time. name is the
// sale's id, empty if there is none: text from a client never becomes a label.
func (j *Judge) refuse(w http.ResponseWriter, r *http.Request, name string, began time.Time, no *sale.Refusal) error {
	meter.Lost(name, time.Since(began))
	meter.CountAttempt(name, "refused", no.Reason)
	return reply.Refuse(j.refuser, w, r, no)
}

// handOn hands on a request without a reservation: it is unchanged, has no token, and still ends with its
// client.
func (j *Judge) handOn(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p *purchase) error {
	if p.scope == scope.Attempt {
		meter.CountAttempt(p.saleID(), "passed", "")
		reply.Publish(r, p.repl, reply.Placeholders{Verdict: "passed", Sale: p.saleID()})
	}
	if len(p.keys) > 0 {
		j.carts.Forget(p.keys)
	}
	if p.turn != nil {
		ctx, done := p.turn.Pass(r.Context())
		defer done()
		r = r.WithContext(ctx)
	}
	return next.ServeHTTP(w, r)
}

// consider reads the attempt and judges it. It refuses all that can be refused without a reservation,
// for every gate and for dry runs. The error comes from reading the body.
func (j *Judge) consider(r *http.Request, p *purchase) (*sale.Refusal, error) {
	if no, err := j.inScope(r, p); no != nil || err != nil || p.scope != scope.Attempt {
		return no, err
	}
	if no, err := j.read(r, p); no != nil || err != nil {
		return no, err
	}
	no := j.filter(r, p)
	if no != nil || !p.remembered { // a remembered cart is good for refusals only
		return no, nil
	}
	p.judged = judged{}
	if no := j.readAgain(r, p); no != nil {
		return no, nil
	}
	return j.filter(r, p), nil
}

// filter judges an attempt that was read.
func (j *Judge) filter(r *http.Request, p *purchase) *sale.Refusal {
	_, filtering := span.Start(r.Context(), span.Filter)
	defer filtering.End()
	return j.walk(r, p, j.rules.rest)
}

// Which judges have a rule.

func (j *Judge) denies() bool       { return len(j.Deny) > 0 }
func (j *Judge) counts() bool       { return !j.rates.IsEmpty() }
func (j *Judge) challenges() bool   { return j.challenge.Challenger != nil }
func (j *Judge) takesTurns() bool   { return j.credentials != nil }
func (j *Judge) looksUp() bool      { return j.lookup != nil }
func (j *Judge) countsShared() bool { return j.rates.HasShared() && !j.looksUp() }
func (j *Judge) passesOthers() bool { return j.OtherItems == "pass" }
func (j *Judge) sells() bool        { return j.gate != nil }

// denied refuses attempts on a denylist.
func (j *Judge) denied(r *http.Request, p *purchase) (*sale.Refusal, bool) {
	return j.lists.Denied(r, p.attempt, j.log), false
}

// takeRates counts the attempt for the rates of this edge that are not late.
func (j *Judge) takeRates(_ *http.Request, p *purchase) (*sale.Refusal, bool) {
	return j.rates.TakeLocal(p.out, p.attempt, time.Now()), false
}

// takeShared counts the attempt for the shared rates. An attempt that may pass without Redis passes
// uncounted.
func (j *Judge) takeShared(r *http.Request, p *purchase) (*sale.Refusal, bool) {
	if p.runtime == nil {
		return nil, false
	}
	no := j.rates.TakeShared(r, p.out, p.runtime, p.attempt, j.log)
	if no != nil && no.Reason == sale.Unavailable && j.mayPass(p) {
		return nil, false
	}
	return no, false
}

// takeLate counts the attempt for the late rates. One that asks whether units are still gone does so for
// all others too, and an attempt with a remembered cart is judged again.
func (j *Judge) takeLate(_ *http.Request, p *purchase) (*sale.Refusal, bool) {
	if p.remembered || p.recheck != nil {
		return nil, false
	}
	return j.rates.TakeLate(p.out, p.attempt, p.now()), false
}

// reached finds the edge runtime. Unlisted items need no Redis: without it they pass.
func (j *Judge) reached(r *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	if p.runtime = j.openRuntime(r, p.dryRun()); p.runtime != nil {
		return nil, false
	}
	if p.unlisted = j.isUnlisted(p.attempt); p.unlisted {
		return nil, true
	}
	return refuse.Unavailable, false
}

// passUnlisted lets an attempt pass whose items no sale lists.
func (j *Judge) passUnlisted(_ *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	p.unlisted = j.isUnlisted(p.attempt)
	return nil, p.unlisted
}

// mayPass reports whether the attempt may have no item of a sale, as far as it is known, and so passes.
func (j *Judge) mayPass(p *purchase) bool {
	if len(p.attempt.Lines) == 0 { // the cart was not looked up
		return j.passesOthers()
	}
	return j.isUnlisted(p.attempt)
}

// repeats looks for what an earlier attempt has left, if the attempt has a key or a ref.
func (j *Judge) repeats(r *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	if !p.named() {
		return nil, false
	}
	return j.gate.repeats(r, p)
}

// chooseSale finds the attempt's sale, and applies its state and the allowlists.
func (j *Judge) chooseSale(r *http.Request, p *purchase) (*sale.Refusal, bool) {
	return j.chooseSaleAt(r, p, p.now()), false
}

func (j *Judge) chooseSaleAt(r *http.Request, p *purchase, now time.Time) (no *sale.Refusal) {
	catalogue := p.runtime.Catalogue()
	p.listing, p.lines, no = filters.Choose(p.attempt, now, catalogue.Sale, catalogue.Listing)
	if no != nil && no.Reason == sale.UnknownItem && !catalogue.Complete() {
		no = refuse.Unavailable // a sale that this edge cannot read may list it
	}
	return j.lists.Eligible(r, p.attempt, no, j.log)
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
func (j *Judge) unitsGone(_ *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	switch {
	case j.enters: // units that are gone are what the attempt waits for
	case p.swapped() != "": // units that are gone for others may be its own
	case j.OnlyChecks() || p.dryRun() || p.remembered:
		no = p.runtime.Recall(p.listing, p.attempt, p.lines)
	default:
		no, p.recheck = p.runtime.Remembered(p.listing, p.attempt, p.lines)
	}
	return no, false
}

// isUnlisted reports whether no sale lists an item of the attempt and the gate lets such
// attempts pass. It returns false if the lists of the sales are unknown.
func (j *Judge) isUnlisted(a *sale.Attempt) bool {
	return j.passesOthers() && j.app.IsOther(a)
}

// openRuntime returns the edge runtime if it may sell now. A dry run sells nothing.
func (j *Judge) openRuntime(r *http.Request, dryRun bool) *edgeruntime.Runtime {
	d := j.app.Runtime()
	if d == nil || d.Ready() != nil {
		return nil
	}
	if d.IsLocal() && !dryRun && !fromThisMachine(r) {
		if c := j.log.Check(zap.WarnLevel, "not selling: `redis embedded` is for trying things out on this machine; configure a redis"); c != nil {
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
