package gate

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/option/waiting"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// unheardFor is how long a client waits for the release of an order that Redis may have put into
// the line.
const unheardFor = 250 * time.Millisecond

// enqueue reserves stock for an order that waits where others do.
func (g *Gate) enqueue(ctx context.Context, r *http.Request, p *order, id string, options edge.HoldOptions) (reservation.Hold, *sale.Refusal, error) {
	q, saleID := p.Runtime.Queue(), p.SaleID()
	options.Queue = &reservation.QueueOptions{
		Pace: g.Queue.ShopPace(), Most: int64(g.Queue.Most), Memory: g.Queue.Memory, Longest: time.Duration(g.Queue.Longest), Edge: q.Edge, Gate: g.orderPrint(),
	}
	if int64(len(p.Body)) <= g.Queue.MaxBody { // else it does not wait
		var err error
		if options.Queue.Order, err = g.pack(r, p, id); err != nil {
			return reservation.Hold{}, nil, err
		}
	}
	w := q.Enter(saleID, id, g.orderPrint(), options.Queue.Order)
	hold, refusal, err := p.Runtime.Hold(context.WithoutCancel(ctx), id, p.Listing, p.Attempt, p.Lines, options)
	if err != nil || refusal != nil || hold.State != record.Waiting {
		w.Leave()
		if errors.Is(err, edge.ErrUnknown) && g.mayBeSent(ctx, p, id) {
			return hold, &sale.Refusal{Reason: sale.InDoubt, RetryAfter: inDoubtWait, Reservation: id}, nil
		}
		return hold, refusal, err
	}
	w.Wait()
	p.waiter = w
	return hold, nil, nil
}

// mayBeSent reports whether an order that may wait, although Redis has not said so, may be sent. This
// edge does not send it; another one does if this one was silent for so long that it counts as dead.
func (g *Gate) mayBeSent(ctx context.Context, p *order, id string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unheardFor)
	defer cancel()
	_, err := p.Runtime.ReleaseEventually(ctx, p.SaleID(), id, reservation.SourceUnheard, "unsent")
	return err != nil
}

// pack returns what is needed to send the order without its request.
func (g *Gate) pack(r *http.Request, p *order, id string) ([]byte, error) {
	o := waiting.OrderOf(r, p.Body)
	o.Gate, o.Server, o.Attempt, o.Lines = g.orderPrint(), g.serverName(), *p.Attempt, p.Lines
	o.Config, o.Reads, o.Mode, o.HoldFor, o.At = g.prints.config, g.prints.reads, g.terms.Mode(), g.terms.Hold.HoldFor, p.Began
	if p.Attempt.Key != "" {
		o.KeepCopy = max(g.terms.Hold.KeyTTL, p.Listing.Sale.EndsAt.Sub(p.Listing.Now()))
	}
	return p.Runtime.Queue().Pack(p.SaleID(), id, o)
}

// await waits for the order's turn. When the client has waited long enough, it is told where the order
// stands, or that it left the line.
func (g *Gate) await(r *http.Request, p *order, pl *forward.InFlightSlot, hold reservation.Hold) takeoff {
	w, q := p.waiter, p.Runtime.Queue()
	p.waiter = nil
	defer w.Leave()
	timer := time.NewTimer(g.Queue.WaitOf(r))
	defer timer.Stop()
	ctx := context.WithoutCancel(r.Context())
	for {
		select {
		case t := <-w.Turn:
			if t.Try == 0 {
				return g.hasLeft(ctx, p, hold.ID)
			}
			if no := g.verifyOpen(r, p, t); no != nil && isLater(no) {
				w.Wait()
				continue
			} else if no != nil {
				return g.release(ctx, p, hold.ID, no)
			}
			asked := time.Now()
			sent, err := q.Send(ctx, t, g.terms.Hold.HoldFor, g.terms.Hold.Margin, g.terms.Mode())
			if errors.Is(err, queue.ErrNotYours) {
				p.EndTurn(r)
				w.Wait()
				continue
			}
			// Redis may have heard it, and is told that it was not sent
			if err != nil || g.timeToForward(&sent, asked) <= 0 {
				p.EndTurn(r)
				w.Unsent(t, time.Duration(g.Queue.Longest), g.terms.Hold.Margin)
				continue
			}
			p.try = t.Try
			sent.Lines, sent.Ref, sent.Shadow = hold.Lines, hold.Ref, hold.Shadow
			return g.forwarding(r, p, pl, sent, asked)
		case <-timer.C:
			return g.tells(ctx, p, hold.ID)
		case <-r.Context().Done():
			// nothing leads the client back to its order, unless it has a key
			if !g.leadsBack(p.Attempt) && q.Cancel(ctx, p.SaleID(), hold.ID, "its client left") == nil {
				return refused(refuseLeft)
			}
			return g.tells(ctx, p, hold.ID) // it may have closed only its own side, and the order goes on
		}
	}
}

// tell finds out where an order stands, so that the client can ask for it later.
func (g *Gate) tell(ctx context.Context, p *order, id string) *sale.Refusal {
	q := p.Runtime.Queue()
	ticket, err := q.Ticket(p.SaleID(), id)
	if err != nil {
		return refuse.Unavailable
	}
	if p.place, err = q.Place(ctx, p.SaleID(), id); err != nil {
		p.place = queue.Place{State: record.Waiting} // it waits all the same
	}
	p.ticket = ticket
	meter.CountAttempt(p.SaleID(), "waiting", "")
	return nil
}

// leadsBack reports whether an attempt that is made again leads its client to the place of its order: by its
// key, or by its ref where the shop has said that this client has a cart with it.
func (g *Gate) leadsBack(a *sale.Attempt) bool {
	return a.Key != "" || g.terms.RefIsLookedUp && a.Ref != "" && !a.RefShared
}

// release takes an order out of the line that must not be sent.
func (g *Gate) release(ctx context.Context, p *order, id string, no *sale.Refusal) takeoff {
	if p.Runtime.Queue().Cancel(ctx, p.SaleID(), id, string(no.Reason)) != nil {
		return g.hasLeft(ctx, p, id) // another edge may have sent it
	}
	return refused(no)
}

// tells is tell for an order that does not go to the shop now.
func (g *Gate) tells(ctx context.Context, p *order, id string) takeoff {
	if no := g.tell(ctx, p, id); no != nil {
		return refused(no)
	}
	return takeoff{way: isQueued}
}

// again202 tells the client of a repeat where the order of its key stands.
func (g *Gate) again202(r *http.Request, p *order, b *reservation.AlreadyBound) *sale.Refusal {
	if no := g.tell(context.WithoutCancel(r.Context()), p, b.ID); no != nil {
		return no
	}
	p.bound = b
	return nil
}

// hasLeft is the answer about an order that is not in the line any more: a refusal where it was
// released, else its place.
func (g *Gate) hasLeft(ctx context.Context, p *order, id string) takeoff {
	place, err := p.Runtime.Queue().Place(ctx, p.SaleID(), id)
	if err == nil && !place.Sent && (place.State == record.Released || place.State == record.Expired) {
		if reason, known := place.Refused(); known {
			return refused(sale.Refuse(reason))
		}
		return refused(refuse.NotSent)
	}
	return g.tells(ctx, p, id) // another edge may have sent it, and the shop may have refused it
}

// accept answers 202 with the place of the order.
func (g *Gate) accept(w http.ResponseWriter, r *http.Request, p *order) error {
	_, id, _ := p.Runtime.Queue().ReadTicket(p.ticket)
	p.Publish(r, "waiting", id)
	return waiting.Accept(w, r, p.place, id, g.Queue.OrdersAt+"/"+p.ticket)
}

// putOff lets an order wait again that the shop wants later.
func (g *Gate) putOff(r *http.Request, p *order, pl *forward.InFlightSlot, f *forward.Forwarding) takeoff {
	p.EndTurn(r)
	ctx, id, q := context.WithoutCancel(r.Context()), f.Hold.ID, p.Runtime.Queue()
	packed, err := g.pack(r, p, id)
	if err == nil {
		p.waiter = q.Enter(p.SaleID(), id, g.orderPrint(), packed)
		err = q.Again(ctx, queue.Turn{Sale: p.SaleID(), ID: id, Try: p.try}, g.orderPrint(), packed, time.Duration(g.Queue.Longest), g.terms.Hold.Margin, *f.PutOff, waiting.MostAgain)
	}
	if err == nil {
		p.waiter.Wait()
		return g.await(r, p, pl, f.Hold)
	}
	if p.waiter != nil {
		p.waiter.Leave()
		p.waiter = nil
	}
	if g.putOffTooOften(ctx, p.Runtime, p.SaleID(), id, err) {
		return refused(refuse.NotSent)
	}
	return g.tells(ctx, p, id)
}

// putOffTooOften releases an order that the shop has put off as often as it may, and says
// whether that is so. After any other error Redis may have heard that it waits again: it is sent
// once more, or in doubt at its deadline.
func (g *Gate) putOffTooOften(ctx context.Context, d *edgeruntime.Runtime, saleID, id string, err error) bool {
	if !errors.Is(err, queue.ErrTooOften) {
		g.Log().Warn("redis did not say whether an order that the shop wants later waits again: if not, it is in doubt at its deadline",
			zap.String("sale", saleID), zap.String("reservation", id), zap.Error(err))
		return false
	}
	meter.CountAttempt(saleID, "released", "")
	_, _ = d.ReleaseEventually(ctx, saleID, id, reservation.SourceShop, "put off too often")
	return true
}
