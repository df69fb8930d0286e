package gate

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/edge"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
)

// Foresight is one attempt whose verdict a gate predicts from memory. It is reused for the
// next attempt.
type Foresight struct {
	attempt  sale.Attempt
	purchase purchase
	over     sale.Refusal
	asked    askedChallenge
	Waiter   Waiter
	// Arrival is that of the attempt. With a Waiting, Foresee does not wait: the attempt is to be
	// foreseen again with the Arrival and Why that it has then.
	Arrival Arrival
	Why     *sale.Refusal
	now     time.Time // of the answer
}

// Arrival and Waiting are those of the edge.
type (
	Arrival = edge.Arrival
	Waiting = edge.Waiting
)

// Waiter is called when an answer takes time: until the edge has read what other edges have
// bound, or until fewer attempts wait for Redis.
type Waiter interface {
	// BeforeWait is called before Foresee waits.
	BeforeWait()
	// AfterWait is called with the time when the wait was over.
	AfterWait(time.Time)
}

// Reset clears the attempt. Its memory is reused for the next attempt.
func (s *Foresight) Reset() {
	s.purchase, s.Arrival, s.Why = purchase{}, Arrival{}, nil
	if s.asked.reached {
		s.asked = askedChallenge{}
	}
}

// SaleID returns the id of the attempt's sale, empty if none was found.
func (s *Foresight) SaleID() string { return s.purchase.saleID() }

// Foresee returns the refusal with which the gate would answer a request, as far as memory
// tells. A refused attempt has been counted as the gate counts it.
func (g *Gate) Foresee(r *http.Request, body []byte, s *Foresight, now time.Time) Foreseen {
	s.now = now
	f := g.foresee(r, body, s, now)
	if f.Refusal == nil {
		return f
	}
	if no := g.settleChallenge(s, s.now, f.Refusal); no != nil {
		return Foreseen{Refusal: no}
	}
	return f
}

// Foreseen is the refusal with which a gate would answer.
type Foreseen struct {
	Refusal *sale.Refusal // nil: only the gate can decide
	// Over is the rate that refuses, and wait its waiting time; nil: none refuses.
	Over *refuse.Rate
	Wait time.Duration
	// Later: the attempt is to be foreseen again when its Waiting was woken. It was not counted.
	Later bool
}

// foresee says whether the gate would refuse a request, by its own rules in their order, as
// far as memory tells. The rates have counted a refused attempt; an attempt that goes on to
// the gate is counted there. The headers that a gate removes are gone.
//
// `unavailable` is normally not foreseen, because the gate may learn what cannot be asked
// here. It is the answer only if the edge could not read in time what other edges have
// bound: the gate would wait for the same.
func (g *Gate) foresee(r *http.Request, body []byte, s *Foresight, now time.Time) (f Foreseen) {
	if f.Refusal = g.reader.Check(r); f.Refusal != nil {
		return f
	}
	if g.MaxBody > 0 && int64(len(body)) > g.MaxBody {
		return f
	}
	p := &s.purchase
	p.attempt, p.body = &s.attempt, body
	no := g.reader.Borrow(p.attempt, r, body, g.env(r, nil, false))
	if no == nil {
		no = g.lists.Denied(r, p.attempt, g.log)
	}
	if no != nil {
		if no.Reason != sale.Unavailable {
			f.Refusal = no
		}
		return f
	}
	over, wait := g.rates.ForeseeLocal(p.attempt, now)
	if over == nil {
		if f.Refusal, f.Later = g.foreseeLater(r, s, now); f.Refusal == nil {
			return f
		}
		over, wait = g.rates.CountLocal(p.attempt, now)
	}
	if over != nil {
		f.Over, f.Wait = &over.Header, wait
		p.listing = nil // the sale has not judged it
		s.over = sale.Refusal{Reason: sale.RateLimited, RetryAfter: refuse.WaitSeconds(f.Wait)}
		f.Refusal = &s.over
	}
	return f
}

// foreseeLater judges an attempt that the rates of this edge let pass. nil: it goes on, or
// only the gate can decide, or it is to be foreseen later.
func (g *Gate) foreseeLater(r *http.Request, s *Foresight, now time.Time) (no *sale.Refusal, later bool) {
	p := &s.purchase
	if no := g.foreseeChallenge(r, s, now); no != nil {
		return no, false
	}
	if p.named() && !g.foreseeRuntime(r, p, now) {
		return nil, false
	}
	no = g.foreseeSale(r, p, now)
	if no == nil && g.isOutside(s) {
		no = g.foreseeOutside(r, s)
	}
	if no == nil || !p.named() {
		return no, false
	}
	// a check that was sent before the refusal was known says nothing of what was bound meanwhile
	if s.Arrival.Waiting == nil {
		s.Arrival.At = time.Time{}
	} else if !isSame(s.Why, no) {
		s.Arrival.At, s.Why = time.Now(), no
	}
	switch isNew, err := g.foreseeNew(s); {
	case errors.Is(err, edge.ErrLater):
		return nil, true
	case err != nil:
		return refuse.Unavailable, false
	case !isNew:
		return nil, false
	}
	return no, false
}

// isSame says whether an attempt is refused for what it was refused for before it waited. What is
// known of stock changes with each refusal that is made of it.
func isSame(before, no *sale.Refusal) bool {
	return before == no || before != nil && before.Reason == no.Reason && no.Reason != sale.SoldOut && no.Reason != sale.AllHeld
}

// isOutside says whether so many attempts wait for Redis that this one had better wait here, where
// it takes a tenth of what it takes in the server. An attempt beside which others wait on its
// connection goes on.
func (g *Gate) isOutside(s *Foresight) bool {
	p := &s.purchase
	return !g.Check && p.listing != nil && s.Arrival.Waiting == nil && p.runtime.IsCrowded(p.listing)
}

// foreseeOutside judges an attempt again that has waited until fewer ask Redis: what they have got
// may leave nothing for it.
func (g *Gate) foreseeOutside(r *http.Request, s *Foresight) *sale.Refusal {
	s.Waiter.BeforeWait()
	room := s.purchase.runtime.AwaitRoom(s.purchase.listing)
	s.now = time.Now()
	s.Waiter.AfterWait(s.now)
	no := g.foreseeSale(r, &s.purchase, s.now)
	if no == nil && !room {
		return refuse.Busy
	}
	return no
}

// foreseeNew says whether the attempt certainly repeats no attempt that has reserved, so
// that it may be refused. It waits until the edge has read what other edges have bound, or
// returns ErrLater; another error says that it could not be read in time. False: the gate has
// to ask Redis.
func (g *Gate) foreseeNew(s *Foresight) (isNew bool, err error) {
	p := &s.purchase
	if s.Arrival.Waiting == nil {
		s.Waiter.BeforeWait()
	}
	var later error
	for _, l := range candidates(p.runtime.Catalogue(), p.attempt) {
		isNew, at, err := p.runtime.SurelyNewAt(l, p.attempt, &s.Arrival)
		if !at.IsZero() {
			s.now = at
			s.Waiter.AfterWait(at)
		}
		switch {
		case errors.Is(err, edge.ErrLater):
			later = err // the other sales are checked meanwhile
		case err != nil || !isNew:
			return false, err
		}
	}
	return later == nil, later
}

// foreseeRuntime finds the edge runtime, if it can certainly sell now.
func (g *Gate) foreseeRuntime(r *http.Request, p *purchase, now time.Time) bool {
	p.runtime = g.app.Runtime()
	return p.runtime != nil && p.runtime.ReadyAt(now) == nil && (!p.runtime.IsLocal() || fromThisMachine(r))
}

// foreseeSale judges an attempt that all rates let pass. nil: it goes on, or only the gate
// can decide.
func (g *Gate) foreseeSale(r *http.Request, p *purchase, now time.Time) *sale.Refusal {
	if g.rates.HasShared() || g.isUnlisted(p.attempt) || !g.foreseeRuntime(r, p, now) {
		return nil
	}
	no := g.judge(r, p, now)
	if no == nil {
		no = p.runtime.Recall(p.listing, p.lines)
	}
	if no == nil && !g.Check && g.places.IsFull() {
		if no = refuse.Busy; g.places.IsUnderWay(singleKey(p)) {
			no = refuse.Duplicate
		}
	}
	if no != nil && no.Reason == sale.Unavailable {
		return nil
	}
	return no
}

// CountFast counts a refusal twice: like any other, and as a fast one, of an attempt that
// began at that time. It says whether there is an answer.
func (g *Gate) CountFast(a *refuse.Answer, saleID string, began time.Time) bool {
	if a == nil {
		return false
	}
	meter.Lost(time.Since(began))
	m := meter.All()
	m.Fast.Inc()
	switch c := g.fastCounters[a.Index].Load(); {
	case c == nil: // often there is one sale
		c = &refusals{saleID, m.Attempt(saleID, "refused", a.Kind.Reason)}
		g.fastCounters[a.Index].Store(c)
		c.Inc()
	case c.sale == saleID:
		c.Inc()
	default:
		m.Attempt(saleID, "refused", a.Kind.Reason).Inc()
	}
	return true
}

// CountFastGuard is CountFast for a guard, which knows no sale.
func CountFastGuard(a *refuse.Answer) bool {
	if a == nil {
		return false
	}
	meter.All().Fast.Inc()
	meter.CountAttempt("", "refused", sale.Malformed)
	return true
}

// refusals counts the refusals with one reason in one sale.
type refusals struct {
	sale string
	prometheus.Counter
}

// FastRefusals lets a listener wrapper refuse for a gate. Caddy's metrics do not include its
// answers, and the access log only those that Log asks for; the metrics of Stockgate count them.
//
// The gate must read all its values itself: a placeholder that another directive sets, such
// as {http.auth.user.id}, is an error.
type FastRefusals struct {
	// Force: allow handlers before the gate that may change what the client gets or the gate
	// sees; they do not run on a fast refusal. Without it, the gate itself refuses a request
	// that meets such a handler.
	Force bool `json:"force,omitempty"`
	// Log is the share of the refusals that get a line in the server's access log, as a percentage
	// such as "1%". The line has the field `sampled`. Default: none is logged.
	Log string `json:"log,omitempty"`
}

// provisionFast checks what fast refusals of this gate require.
func (g *Gate) provisionFast() error {
	if g.FastRefusals == nil {
		return nil
	}
	if err := g.fastConflict(); err != nil {
		return err
	}
	if g.FastRefusals.Log != "" {
		share, err := accesslog.ParseShare(g.FastRefusals.Log)
		if err != nil {
			return fmt.Errorf("fast_refusals: %w", err)
		}
		g.fastLogged = share
	}
	if g.server == nil || !g.app.HasListener(g.server) {
		return fmt.Errorf("fast_refusals: the server of this gate has no listener wrapper stockgate: write `servers { listener_wrappers { stockgate } }` in the global options")
	}
	g.fastCounters = make([]atomic.Pointer[refusals], len(sale.Kinds))
	return nil
}

// FastLogged is the share of the fast refusals that get a line in the access log.
func (g *Gate) FastLogged() accesslog.Share { return g.fastLogged }

// fastConflict returns an error for a value that the gate does not read itself.
func (g *Gate) fastConflict() error {
	if g.Lookup != nil || g.OneAtATime != nil {
		return errors.New("fast_refusals: lookup and one_at_a_time work only where Caddy handles the request: leave fast_refusals out")
	}
	if g.Options.Any() {
		return errors.New("fast_refusals: the gate must read the operation to know whether a request is an attempt (graphql, json_body): leave fast_refusals out")
	}
	for _, expr := range g.values() {
		// a value that does not compile is reported elsewhere
		if v, err := attempt.Compile(expr); err == nil && v.Kind() == attempt.Text {
			return fmt.Errorf("fast_refusals: the value %s is known to Caddy only when it handles the request: take it from the request itself, such as {header.X} or {jwt.sub}", expr)
		}
	}
	return nil
}

// values returns all expressions that the gate reads from requests.
func (g *Gate) values() []string {
	exprs := slices.Concat(g.Sale, g.Buyer, g.Region, g.Ref, g.Idempotency)
	for _, r := range g.Rates {
		exprs = append(exprs, r.Key...)
	}
	for _, kind := range g.Identities {
		exprs = append(exprs, kind...)
	}
	for _, l := range g.Lines {
		exprs = append(append(exprs, l.SKU...), l.Quantity...)
	}
	slices.Sort(exprs)
	return exprs
}
