package order

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
	"github.com/stockgate/stockgate/caddymodule/gate/sending"
	"github.com/stockgate/stockgate/caddymodule/internal/reply"
	"github.com/stockgate/stockgate/caddymodule/internal/span"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Sell reserves and forwards an attempt; an order that is sold already is only forwarded.
func (t *Taker) Sell(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, p *Deal) error {
	pl := new(forward.InFlightSlot)
	defer pl.GiveBack()
	off := t.takeOff(r, p, pl)
	for sent := false; off.Way == sending.IsForwarded; sent = true {
		f := off.Forwarding
		f.SentBefore = sent
		t.GoesToShop(&p.Case, f)
		if err := f.Forward(w, r, next, off.Timeout); f.PutOff == nil {
			return f.AnswerDoubt(w, r, t.Refuser(), t.HasErrorRoutes(), err)
		}
		off = t.PutOff(r, &p.Queued, pl, f)
	}
	pl.GiveBack() // before writing, because the client may be slow
	switch {
	case off.Way == sending.IsAnswered:
		return t.Answer(w, r, p)
	case off.Refusal == sending.RefuseLeft: // counted as released
		return reply.Refuse(t.Refuser(), w, r, off.Refusal)
	}
	return t.Refuse(w, r, p.SaleID(), p.Began, off.Refusal)
}

// takeOff takes an in-flight slot for the attempt and holds its stock.
func (t *Taker) takeOff(r *http.Request, p *Deal, pl *forward.InFlightSlot) sending.Takeoff {
	defer p.Recheck.End()
	if no := pl.Take(&t.Slots, p.Runtime, singleKey(&p.Case)); no != nil {
		return t.withoutSlot(r, p, no)
	}
	if p.bound != nil {
		return t.repeat(r, p, pl)
	}
	asked := time.Now()
	hold, no, err := t.reserve(r, p, pl.Key)
	if no == refuse.Pending && p.Named() {
		// another attempt of the buyer is in flight; this one may be done already
		if no = t.repeatsUnread(r, p, refuse.Pending); no == nil && p.bound != nil {
			return t.repeat(r, p, pl)
		}
		return sending.Refused(cmp.Or(no, refuse.Pending))
	}
	if b, bound := errors.AsType[*reservation.AlreadyBound](err); bound {
		if no = t.judgeBound(r, p, b); no != nil {
			return sending.Refused(no)
		}
		if p.bound != nil {
			return t.repeat(r, p, pl)
		}
		if hold, no, err = t.reserve(r, p, pl.Key); no == nil && errors.As(err, new(*reservation.AlreadyBound)) {
			no = refuse.Pending
		}
	}
	switch {
	case no != nil:
		return sending.Refused(no)
	case err != nil:
		if c := t.Log().Check(zap.DebugLevel, "redis gave no answer to an attempt"); c != nil {
			c.Write(zap.Error(err))
		}
		return sending.Refused(refuse.Unavailable)
	}
	if p.Waits() {
		p.EndTurn(r) // others of its session go on while it waits
		return t.Await(r, &p.Queued, pl, hold)
	}
	// The client is gone and nothing was sent, so the hold is released, not in doubt. The
	// client may have closed only its own side: it still gets an answer.
	if r.Context().Err() != nil {
		t.Unsent(r, &p.Case, hold)
		return sending.Refused(sending.RefuseLeft)
	}
	return t.Prepare(r, &p.Case, pl, hold, asked)
}

// withoutSlot decides on an attempt without an in-flight slot: a buyer who has bought must
// not get the refusal busy.
func (t *Taker) withoutSlot(r *http.Request, p *Deal, no *sale.Refusal) sending.Takeoff {
	repeat := t.Terms.Queue != nil && no == refuse.Duplicate && t.LeadsBack(p.Attempt) // its order may wait
	if no.Reason != sale.Busy && !repeat || p.bound != nil {
		return sending.Refused(no)
	}
	p.Recheck.End() // it does not reserve
	if earlier := t.repeatsUnread(r, p, no); earlier != nil {
		return sending.Refused(earlier)
	}
	if p.HasAnswer() {
		return sending.Takeoff{Way: sending.IsAnswered}
	}
	return sending.Refused(no)
}

// repeat gives an attempt what its earlier order got, or forwards that once more.
func (t *Taker) repeat(r *http.Request, p *Deal, pl *forward.InFlightSlot) sending.Takeoff {
	if p.HasAnswer() {
		return sending.Takeoff{Way: sending.IsAnswered}
	}
	return t.forwardAgain(r, p, pl)
}

// reserve sends the reserve request to Redis. It goes on when the client leaves: an answer
// that is not read would leave a hold behind.
func (t *Taker) reserve(r *http.Request, p *Deal, purchaseKey string) (reservation.Hold, *sale.Refusal, error) {
	buyerKey := purchaseKey[:len(p.Listing.Sale.ID)+1+len(p.Attempt.Buyer)]
	if !t.Slots.Enter(buyerKey) {
		return reservation.Hold{}, refuse.Pending, nil // an identical attempt has been refused as duplicate
	}
	defer t.Slots.Leave(buyerKey)
	id, err := newID()
	if err != nil {
		return reservation.Hold{}, nil, err
	}
	defer p.Recheck.End() // the shop's answer takes longer
	ctx, reserving := span.Start(r.Context(), span.Reserve)
	defer reserving.End()
	options := t.Terms.Hold
	options.InPlaceOf, options.Recall = p.Swapped(), p.Recheck == nil
	if t.Terms.Queue != nil {
		return t.Enqueue(ctx, r, &p.Queued, id, options)
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

// LacksSlot refuses an attempt that would get no in-flight slot now.
func (t *Taker) LacksSlot(p *judge.Case) *sale.Refusal {
	switch {
	case !t.Slots.IsFull():
		return nil
	case t.Slots.IsUnderWay(singleKey(p)):
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
