package gate

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// refuseLeft answers a client that closed its own side of the connection and still reads: there is no order.
var refuseLeft = &sale.Refusal{Reason: sale.Unavailable, Detail: "the connection was closed before stock was held"}

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
func (g *Gate) sell(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p *order) error {
	pl := new(forward.InFlightSlot)
	defer pl.GiveBack()
	t := g.takeOff(r, p, pl)
	for sent := false; t.way == isForwarded; sent = true {
		f := t.forwarding
		f.SentBefore = sent
		g.ForgetCart(&p.Case)
		endTurnWith(p, f)
		if err := f.Forward(w, r, next, t.timeout); f.PutOff == nil {
			return f.AnswerDoubt(w, r, g.Refuser(), g.Server(), err)
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
		return reply.Refuse(g.Refuser(), w, r, t.refusal)
	}
	return g.Refuse(w, r, p.SaleID(), p.Began, t.refusal)
}

// takeOff takes an in-flight slot for the attempt and holds its stock.
func (g *Gate) takeOff(r *http.Request, p *order, pl *forward.InFlightSlot) takeoff {
	defer p.Recheck.End()
	if no := pl.Take(&g.slots, p.Runtime, singleKey(&p.Case)); no != nil {
		return g.withoutSlot(r, p, no)
	}
	if p.bound != nil {
		return g.repeat(r, p, pl)
	}
	asked := time.Now()
	hold, no, err := g.reserve(r, p, pl.Key)
	if no == judge.RefusePending && p.Named() {
		// another attempt of the buyer is in flight; this one may be done already
		if no = g.repeatsUnread(r, p, judge.RefusePending); no == nil && p.bound != nil {
			return g.repeat(r, p, pl)
		}
		return refused(cmp.Or(no, judge.RefusePending))
	}
	if b, bound := errors.AsType[*reservation.AlreadyBound](err); bound {
		if no = g.judgeBound(r, p, b); no != nil {
			return refused(no)
		}
		if p.bound != nil {
			return g.repeat(r, p, pl)
		}
		if hold, no, err = g.reserve(r, p, pl.Key); no == nil && errors.As(err, new(*reservation.AlreadyBound)) {
			no = judge.RefusePending
		}
	}
	switch {
	case no != nil:
		return refused(no)
	case err != nil:
		if c := g.Log().Check(zap.DebugLevel, "redis gave no answer to an attempt"); c != nil {
			c.Write(zap.Error(err))
		}
		return refused(refuse.Unavailable)
	}
	if p.waiter != nil {
		p.EndTurn(r) // others of its session go on while it waits
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
func (g *Gate) forwarding(r *http.Request, p *order, pl *forward.InFlightSlot, hold reservation.Hold, asked time.Time) takeoff {
	timeout := g.timeToForward(&hold, asked)
	if timeout <= 0 {
		g.unsent(r, p, hold)
		return refused(refuse.Unavailable)
	}
	signed, err := g.sign(p, &hold)
	if err != nil {
		g.unsent(r, p, hold)
		return refused(judge.RefuseTooLong)
	}
	p.Publish(r, "reserved", hold.ID)
	f := &forward.Forwarding{Rules: g.terms.Outcomes, MaxAnswer: g.terms.AnswerLimit(), Log: g.Log(), Slot: pl, Began: p.Began, Hold: hold, Token: signed, Body: p.Body, Repl: p.Repl}
	if g.inquirer != nil {
		f.Asker = g.inquirer.About(r, &p.Case, &f.Hold, asked)
	}
	if p.Attempt.Key != "" && r.Method != http.MethodHead {
		f.Copy = new(forward.Copy)
		// a TTL only limits Redis's memory: the binding lives as long as the sale
		f.KeepCopy = max(g.terms.Hold.KeyTTL, p.Listing.Sale.EndsAt.Sub(p.Listing.Now()))
	}
	if g.Queue != nil {
		f.Queued = true
		if p.Swapped() == "" { // else the token of the hold that it replaces is still good for its units
			f.Later = g.terms.Later
		}
		f.Ended = func() { p.Runtime.Queue().Freed(hold.Sale) }
	}
	return takeoff{way: isForwarded, forwarding: f, timeout: timeout}
}

// withoutSlot decides on an attempt without an in-flight slot: a buyer who has bought must
// not get the refusal busy.
func (g *Gate) withoutSlot(r *http.Request, p *order, no *sale.Refusal) takeoff {
	repeat := g.Queue != nil && no == refuse.Duplicate && g.leadsBack(p.Attempt) // its order may wait
	if no.Reason != sale.Busy && !repeat || p.bound != nil {
		return refused(no)
	}
	p.Recheck.End() // it does not reserve
	if earlier := g.repeatsUnread(r, p, no); earlier != nil {
		return refused(earlier)
	}
	if t, answered := answerTo(p); answered {
		return t
	}
	return refused(no)
}

// repeat gives an attempt what its earlier order got, or forwards that once more.
func (g *Gate) repeat(r *http.Request, p *order, pl *forward.InFlightSlot) takeoff {
	if t, answered := answerTo(p); answered {
		return t
	}
	return g.again(r, p, pl)
}

// answerTo is the answer to an attempt's earlier order, if there is one.
func answerTo(p *order) (t takeoff, answered bool) {
	switch {
	case p.ticket != "":
		return takeoff{way: isQueued}, true
	case p.stored != nil:
		return takeoff{way: isReplayed}, true
	}
	return t, false
}

// sign makes the token of a hold.
func (g *Gate) sign(p *order, hold *reservation.Hold) (string, error) {
	c := p.Listing.Sale.ClaimsOf(p.Attempt, hold.Lines)
	c.ID, c.IssuedAt, c.ExpiresAt, c.Epoch, c.Sale = hold.ID, hold.Created.Unix(), hold.Exp.Unix(), hold.Epoch, hold.Sale
	return g.App.Keys().Signer().Sign(c)
}

// timeToForward returns how long the shop may take for a hold that was requested at that
// time: until its token expires, which says full seconds. 0 or less: it must not be sent.
func (g *Gate) timeToForward(hold *reservation.Hold, asked time.Time) time.Duration {
	timeout := hold.Exp.Truncate(time.Second).Sub(hold.Created) - time.Since(asked)
	if g.terms.MostAtShop > 0 {
		timeout = min(timeout, g.terms.MostAtShop)
	}
	return timeout
}

// reserve sends the reserve request to Redis. It goes on when the client leaves: an answer
// that is not read would leave a hold behind.
func (g *Gate) reserve(r *http.Request, p *order, purchaseKey string) (reservation.Hold, *sale.Refusal, error) {
	buyerKey := purchaseKey[:len(p.Listing.Sale.ID)+1+len(p.Attempt.Buyer)]
	if !g.slots.Enter(buyerKey) {
		return reservation.Hold{}, judge.RefusePending, nil // an identical attempt has been refused as duplicate
	}
	defer g.slots.Leave(buyerKey)
	id, err := newID()
	if err != nil {
		return reservation.Hold{}, nil, err
	}
	defer p.Recheck.End() // the shop's answer takes longer
	ctx, reserving := span.Start(r.Context(), span.Reserve)
	defer reserving.End()
	options := g.terms.Hold
	options.InPlaceOf, options.Recall = p.Swapped(), p.Recheck == nil
	if g.Queue != nil {
		return g.enqueue(ctx, r, p, id, options)
	}
	return p.Runtime.Hold(context.WithoutCancel(ctx), id, p.Listing, p.Attempt, p.Lines, options)
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
func (g *Gate) unsent(r *http.Request, p *order, hold reservation.Hold) {
	meter.CountAttempt(hold.Sale, "released", "")
	// what Redis cannot be told now is reported later
	_, _ = p.Runtime.ReleaseEventually(context.WithoutCancel(r.Context()), hold.Sale, hold.ID, reservation.SourceUnsent, "unsent")
}

// LacksSlot refuses an attempt that would get no in-flight slot now.
func (g *Gate) LacksSlot(p *judge.Case) *sale.Refusal {
	switch {
	case !g.slots.IsFull():
		return nil
	case g.slots.IsUnderWay(singleKey(p)):
		return refuse.Duplicate
	}
	return refuse.Busy
}

// singleKey is the same for two clicks on one button: it is made of the idempotency key, so
// that two keys are two orders, or else of the lines.
func singleKey(p *judge.Case) string {
	var b strings.Builder
	b.Grow(len(p.Listing.Sale.ID) + len(p.Attempt.Buyer) + len(p.Attempt.Key) + 32*len(p.Lines) + 8)
	b.WriteString(p.Listing.Sale.ID)
	b.WriteByte(0)
	b.WriteString(p.Attempt.Buyer)
	if key := p.Attempt.Key; key != "" {
		b.WriteString("\x00key\x00")
		b.WriteString(key)
		return b.String()
	}
	for _, l := range p.Listing.Sale.OrderLines(p.Attempt, p.Lines) {
		b.WriteByte(0)
		b.WriteString(l.Cell())
		b.WriteByte(0)
		b.WriteString(strconv.FormatInt(l.Quantity, 10))
	}
	return b.String()
}
