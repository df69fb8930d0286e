package gate

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const (
	defaultMaxInFlight = 256
	defaultHoldFor     = 30 * time.Second
	leastHoldFor       = 3 * time.Second
	mostHoldFor        = 24 * time.Hour

	defaultIdempotencyTTL = 24 * time.Hour
	mostIdempotencyTTL    = 30 * 24 * time.Hour
)

func (g *Gate) provisionTimes() error {
	hold := time.Duration(g.HoldFor)
	if hold == 0 {
		hold = defaultHoldFor
		if g.mode() == record.ModeBackend {
			hold = backendHoldFor
		}
	}
	if hold < leastHoldFor || hold > mostHoldFor {
		return fmt.Errorf("hold_for %v is outside %v to %v", hold, leastHoldFor, mostHoldFor)
	}
	margin := time.Duration(g.app.Token.Margin)
	if margin == 0 {
		margin = min(max(hold/5, time.Second), 5*time.Second)
	}
	if margin > hold-2*time.Second {
		return fmt.Errorf("hold_for %v leaves no time beside the token's margin of %v; hold at least 2s longer", hold, margin)
	}
	if g.ForwardTimeout < 0 || time.Duration(g.ForwardTimeout) > hold-margin {
		return fmt.Errorf("forward_timeout %v must be positive and end before the token, at most %v after the reservation (hold_for %v, margin %v)",
			time.Duration(g.ForwardTimeout), hold-margin, hold, margin)
	}
	g.forwardTimeout = time.Duration(g.ForwardTimeout)
	if g.forwardTimeout == 0 && g.mode() == record.ModeBackend {
		g.forwardTimeout = backendForwardTimeout
	}
	ttl := time.Duration(g.IdempotencyTTL)
	switch {
	case ttl < 0 || ttl > mostIdempotencyTTL:
		return fmt.Errorf("idempotency_ttl %v must be positive, and at most %v", ttl, mostIdempotencyTTL)
	case ttl == 0:
		ttl = defaultIdempotencyTTL
	}
	g.holdOptions = edge.HoldOptions{HoldFor: hold, Margin: margin, Mode: g.mode(), KeyTTL: ttl, Gate: g.Name}
	return nil
}

// takeoff is what becomes of an attempt that the rules let pass.
type takeoff struct {
	way way
	// forwarding is the way to the shop, which may take so long.
	forwarding *forward.Forwarding
	timeout    time.Duration
	refusal    *sale.Refusal
}

type way uint8

const (
	isRefused   way = iota
	isForwarded     // the shop is asked
	isReplayed      // the client gets what the shop answered to it before
	isQueued        // the client gets its ticket
)

func refused(no *sale.Refusal) takeoff { return takeoff{way: isRefused, refusal: no} }

// sell reserves and forwards an attempt; an order that is sold already is only forwarded.
func (g *Gate) sell(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p *purchase) error {
	pl := new(forward.InFlightSlot)
	defer pl.GiveBack()
	t := g.takeOff(r, p, pl)
	for t.way == isForwarded {
		f := t.forwarding
		g.carts.Forget(p.keys)
		p.endTurnWith(f)
		if err := f.Forward(w, r, next, t.timeout); f.PutOff == nil {
			return f.AnswerDoubt(w, r, g.refuser, g.server, err)
		}
		t = g.putOff(r, p, pl, f)
	}
	pl.GiveBack() // before writing, because the client may be slow
	switch {
	case t.way == isQueued:
		return g.accept(w, r, p)
	case t.way == isReplayed:
		return g.replay(w, r, p)
	case t.refusal == refuseLeft: // counted as released
		return reply.Refuse(g.refuser, w, r, t.refusal)
	}
	return g.refuse(w, r, p.saleID(), p.began, t.refusal)
}

// takeOff takes an in-flight slot for the attempt and holds its stock.
func (g *Gate) takeOff(r *http.Request, p *purchase, pl *forward.InFlightSlot) takeoff {
	defer p.recheck.End()
	if no := pl.Take(&g.slots, p.runtime, singleKey(p)); no != nil {
		return g.withoutSlot(r, p, no)
	}
	if p.bound != nil {
		return g.repeat(r, p, pl)
	}
	asked := time.Now()
	hold, no, err := g.reserve(r, p, pl.Key)
	if no == refusePending && p.named() {
		// another attempt of the buyer is in flight; this one may be done already
		if no = g.repeatsUnread(r, p, refusePending); no == nil && p.bound != nil {
			return g.repeat(r, p, pl)
		}
		return refused(cmp.Or(no, refusePending))
	}
	if b, bound := errors.AsType[*reservation.AlreadyBound](err); bound {
		if no = g.judgeBound(r, p, b); no != nil {
			return refused(no)
		}
		if p.bound != nil {
			return g.repeat(r, p, pl)
		}
		if hold, no, err = g.reserve(r, p, pl.Key); no == nil && errors.As(err, new(*reservation.AlreadyBound)) {
			no = refusePending
		}
	}
	switch {
	case no != nil:
		return refused(no)
	case err != nil:
		if c := g.log.Check(zap.DebugLevel, "redis gave no answer to an attempt"); c != nil {
			c.Write(zap.Error(err))
		}
		return refused(refuse.Unavailable)
	}
	if p.waiter != nil {
		p.endTurn(r) // others of its session go on while it waits
		return g.await(r, p, pl, hold)
	}
	// The client is gone and nothing was sent, so the hold is released, not in doubt. The
	// client may have closed only its own side: it still gets an answer.
	if r.Context().Err() != nil {
		g.unsent(r, p, hold)
		return refused(refuseLeft)
	}
	return g.forwarding(r, p, pl, hold, asked)
}

// forwarding prepares an attempt that has stock for the shop. One that comes too late for its token
// is released.
func (g *Gate) forwarding(r *http.Request, p *purchase, pl *forward.InFlightSlot, hold reservation.Hold, asked time.Time) takeoff {
	timeout := g.timeToForward(&hold, asked)
	if timeout <= 0 {
		g.unsent(r, p, hold)
		return refused(refuse.Unavailable)
	}
	signed, err := g.sign(p, &hold)
	if err != nil {
		g.unsent(r, p, hold)
		return refused(refuseTooLong)
	}
	p.publish(r, "reserved", hold.ID)
	f := &forward.Forwarding{Rules: g.outcomes, MaxAnswer: g.maxAnswer(), Log: g.log, Slot: pl, Began: p.began, Hold: hold, Token: signed, Body: p.body, Repl: p.repl}
	if g.ask != nil {
		f.Asker = g.newAsking(r, p, &f.Hold, asked)
	}
	if p.attempt.Key != "" && r.Method != http.MethodHead {
		f.Copy = new(forward.Copy)
		// a TTL only limits Redis's memory: the binding lives as long as the sale
		f.KeepCopy = max(g.holdOptions.KeyTTL, p.listing.Sale.EndsAt.Sub(p.listing.Now()))
	}
	if g.Queue != nil {
		f.Queued = true
		if p.swapped() == "" { // else the token of the hold that it replaces is still good for its units
			f.Later = g.later
		}
		f.Ended = func() { p.runtime.Queue().Freed(hold.Sale) }
	}
	return takeoff{way: isForwarded, forwarding: f, timeout: timeout}
}

// withoutSlot decides on an attempt without an in-flight slot: a buyer who has bought must
// not get the refusal busy.
func (g *Gate) withoutSlot(r *http.Request, p *purchase, no *sale.Refusal) takeoff {
	repeat := g.Queue != nil && no == refuse.Duplicate && g.leadsBack(p.attempt) // its order may wait
	if no.Reason != sale.Busy && !repeat || p.bound != nil {
		return refused(no)
	}
	p.recheck.End() // it does not reserve
	if earlier := g.repeatsUnread(r, p, no); earlier != nil {
		return refused(earlier)
	}
	if t, answered := p.answer(); answered {
		return t
	}
	return refused(no)
}

// repeat gives an attempt what its earlier order got, or forwards that once more.
func (g *Gate) repeat(r *http.Request, p *purchase, pl *forward.InFlightSlot) takeoff {
	if t, answered := p.answer(); answered {
		return t
	}
	return g.again(r, p, pl)
}

// answer is the answer to an attempt's earlier order, if there is one.
func (p *purchase) answer() (t takeoff, answered bool) {
	switch {
	case p.ticket != "":
		return takeoff{way: isQueued}, true
	case p.stored != nil:
		return takeoff{way: isReplayed}, true
	}
	return t, false
}

// outgrowsToken refuses an order whose token would be too large, before its stock is held. A remembered cart
// may have become smaller since: it is read again first.
func (j *Judge) outgrowsToken(_ *http.Request, p *purchase) (no *sale.Refusal, ends bool) {
	if !p.remembered && !j.app.Signer().Fits(p.listing.Sale.ClaimsOf(p.attempt, p.lines)) {
		no = refuseTooLong
	}
	return no, false
}

// sign makes the token of a hold.
func (g *Gate) sign(p *purchase, hold *reservation.Hold) (string, error) {
	c := p.listing.Sale.ClaimsOf(p.attempt, hold.Lines)
	c.ID, c.IssuedAt, c.ExpiresAt, c.Epoch, c.Sale = hold.ID, hold.Created.Unix(), hold.Exp.Unix(), hold.Epoch, hold.Sale
	return g.app.Signer().Sign(c)
}

// timeToForward returns how long the shop may take for a hold that was requested at that
// time: until its token expires, which says full seconds. 0 or less: it must not be sent.
func (g *Gate) timeToForward(hold *reservation.Hold, asked time.Time) time.Duration {
	timeout := hold.Exp.Truncate(time.Second).Sub(hold.Created) - time.Since(asked)
	if g.forwardTimeout > 0 {
		timeout = min(timeout, g.forwardTimeout)
	}
	return timeout
}

// publish sets the placeholders of an attempt that has a reservation.
func (p *purchase) publish(r *http.Request, verdict, id string) {
	reply.Publish(r, p.repl, reply.Placeholders{Verdict: verdict, Sale: p.saleID(), Reservation: id, Ref: p.attempt.Ref})
}

// reserve sends the reserve request to Redis. It goes on when the client leaves: an answer
// that is not read would leave a hold behind.
func (g *Gate) reserve(r *http.Request, p *purchase, purchaseKey string) (reservation.Hold, *sale.Refusal, error) {
	buyerKey := purchaseKey[:len(p.listing.Sale.ID)+1+len(p.attempt.Buyer)]
	if !g.slots.Enter(buyerKey) {
		return reservation.Hold{}, refusePending, nil // an identical attempt has been refused as duplicate
	}
	defer g.slots.Leave(buyerKey)
	id, err := newID()
	if err != nil {
		return reservation.Hold{}, nil, err
	}
	defer p.recheck.End() // the shop's answer takes longer
	ctx, reserving := span.Start(r.Context(), span.Reserve)
	defer reserving.End()
	options := g.holdOptions
	options.InPlaceOf, options.Recall = p.swapped(), p.recheck == nil
	if g.Queue != nil {
		return g.enqueue(ctx, r, p, id, options)
	}
	return p.runtime.Hold(context.WithoutCancel(ctx), id, p.listing, p.attempt, p.lines, options)
}

// randoms have bytes for several ids each: one system call for every id takes longer than
// the rest of it.
var randoms = sync.Pool{New: func() any { return bufio.NewReaderSize(rand.Reader, 512) }}

// newID returns a new reservation id.
func newID() (string, error) {
	random := randoms.Get().(*bufio.Reader)
	defer randoms.Put(random)
	id, err := uuid.NewV7FromReader(random)
	return id.String(), err
}

// unsent releases a reservation that will not be forwarded.
func (g *Gate) unsent(r *http.Request, p *purchase, hold reservation.Hold) {
	meter.CountAttempt(hold.Sale, "released", "")
	// what Redis cannot be told now is reported later
	_, _ = p.runtime.ReleaseEventually(context.WithoutCancel(r.Context()), hold.Sale, hold.ID, reservation.SourceUnsent, "unsent")
}

// singleKey is the same for two clicks on one button: it is made of the idempotency key, so
// that two keys are two orders, or else of the lines.
func singleKey(p *purchase) string {
	var b strings.Builder
	b.Grow(len(p.listing.Sale.ID) + len(p.attempt.Buyer) + len(p.attempt.Key) + 32*len(p.lines) + 8)
	b.WriteString(p.listing.Sale.ID)
	b.WriteByte(0)
	b.WriteString(p.attempt.Buyer)
	if key := p.attempt.Key; key != "" {
		b.WriteString("\x00key\x00")
		b.WriteString(key)
		return b.String()
	}
	for _, l := range p.listing.Sale.OrderLines(p.attempt, p.lines) {
		b.WriteByte(0)
		b.WriteString(l.Cell())
		b.WriteByte(0)
		b.WriteString(strconv.FormatInt(l.Quantity, 10))
	}
	return b.String()
}
