// Package line lets orders whose stock is held wait until the shop can take them.
package line

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/option/waiting"
	"github.com/stockgate/stockgate/caddymodule/gate/sending"
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

// Usher lets the orders of one gate wait, where it has a queue.
type Usher struct {
	sending.Carrier
	prints prints
}

// Open prepares the usher. The judge and its terms are open.
func (u *Usher) Open() {
	u.Carrier.Open()
	u.Clerk().Verifying = u.Terms.Verifying // the clerk itself is opened with its judge's server
}

// Queued is an attempt whose order may wait, with the place of that order.
type Queued struct {
	judge.Case
	// Ticket names the order, which waits for the shop or is there; empty: the client is to hear the answer
	// itself.
	Ticket string
	place  queue.Place
	// waiter is told the turn of the order; nil: it does not wait.
	waiter *queue.Waiter
	// try is with which turn the order was sent; 0: at once.
	try int64
}

// Forget discards where the order is, because the attempt is read again.
func (p *Queued) Forget() { p.Ticket, p.place = "", queue.Place{} }

// Waits reports whether Enqueue has put the order into the line. Await then waits for its turn.
func (p *Queued) Waits() bool { return p.waiter != nil }

// Enqueue reserves stock for an order that waits where others do.
func (u *Usher) Enqueue(ctx context.Context, r *http.Request, p *Queued, id string, options edge.HoldOptions) (reservation.Hold, *sale.Refusal, error) {
	own, q, saleID := u.Terms.Queue, p.Runtime.Queue(), p.SaleID()
	options.Queue = &reservation.QueueOptions{
		Pace: own.ShopPace(), Most: int64(own.Most), Memory: own.Memory, Longest: time.Duration(own.Longest), Edge: q.Edge, Gate: u.prints.order,
	}
	if int64(len(p.Body)) <= own.MaxBody { // else it does not wait
		var err error
		if options.Queue.Order, err = u.pack(r, &p.Case, id); err != nil {
			return reservation.Hold{}, nil, err
		}
	}
	w := q.Enter(saleID, id, u.prints.order, options.Queue.Order)
	hold, refusal, err := p.Runtime.Hold(context.WithoutCancel(ctx), id, p.Listing, p.Attempt, p.Lines, options)
	if err != nil || refusal != nil || hold.State != record.Waiting {
		w.Leave()
		if errors.Is(err, edge.ErrUnknown) && u.mayBeSent(ctx, &p.Case, id) {
			return hold, sending.InDoubt(id), nil
		}
		return hold, refusal, err
	}
	w.Wait()
	p.waiter = w
	return hold, nil, nil
}

// mayBeSent reports whether an order that may wait, although Redis has not said so, may be sent. This
// edge does not send it; another one does if this one was silent for so long that it counts as dead.
func (u *Usher) mayBeSent(ctx context.Context, p *judge.Case, id string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unheardFor)
	defer cancel()
	_, err := p.Runtime.ReleaseEventually(ctx, p.SaleID(), id, reservation.SourceUnheard, "unsent")
	return err != nil
}

// pack returns what is needed to send the order without its request.
func (u *Usher) pack(r *http.Request, p *judge.Case, id string) ([]byte, error) {
	o := waiting.OrderOf(r, p.Body)
	o.Gate, o.Server, o.Attempt, o.Lines = u.prints.order, u.serverName(), *p.Attempt, p.Lines
	o.Config, o.Reads, o.Mode, o.HoldFor, o.At = u.prints.config, u.prints.reads, u.Terms.Mode(), u.Terms.Hold.HoldFor, p.Began
	if p.Attempt.Key != "" {
		o.KeepCopy = u.KeepCopy(p)
	}
	return p.Runtime.Queue().Pack(p.SaleID(), id, o)
}

// Await waits for the order's turn. When the client has waited long enough, it is told where the order
// stands, or that it left the line.
func (u *Usher) Await(r *http.Request, p *Queued, pl *forward.InFlightSlot, hold reservation.Hold) sending.Takeoff {
	w, q := p.waiter, p.Runtime.Queue()
	p.waiter = nil
	defer w.Leave()
	timer := time.NewTimer(u.Terms.Queue.WaitOf(r))
	defer timer.Stop()
	ctx := context.WithoutCancel(r.Context())
	for {
		select {
		case t := <-w.Turn:
			if t.Try == 0 {
				return u.hasLeft(ctx, p, hold.ID)
			}
			if no := u.verifyOpen(r, &p.Case, t); no != nil && isLater(no) {
				w.Wait()
				continue
			} else if no != nil {
				return u.release(ctx, p, hold.ID, no)
			}
			asked := time.Now()
			sent, err := q.Send(ctx, t, u.Terms.Hold.HoldFor, u.Terms.Hold.Margin, u.Terms.Mode())
			if errors.Is(err, queue.ErrNotYours) {
				p.EndTurn(r)
				w.Wait()
				continue
			}
			// Redis may have heard it, and is told that it was not sent
			if err != nil || u.TimeToForward(&sent, asked) <= 0 {
				p.EndTurn(r)
				w.Unsent(t, time.Duration(u.Terms.Queue.Longest), u.Terms.Hold.Margin)
				continue
			}
			p.try = t.Try
			sent.Lines, sent.Ref, sent.Shadow = hold.Lines, hold.Ref, hold.Shadow
			return u.Prepare(r, &p.Case, pl, sent, asked)
		case <-timer.C:
			return u.tells(ctx, p, hold.ID)
		case <-r.Context().Done():
			// nothing leads the client back to its order, unless it has a key
			if !u.LeadsBack(p.Attempt) && q.Cancel(ctx, p.SaleID(), hold.ID, "its client left") == nil {
				return sending.Refused(sending.RefuseLeft)
			}
			return u.tells(ctx, p, hold.ID) // it may have closed only its own side, and the order goes on
		}
	}
}

// Tell finds out where an order stands, so that the client can ask for it later.
func (u *Usher) Tell(ctx context.Context, p *Queued, id string) *sale.Refusal {
	q := p.Runtime.Queue()
	ticket, err := q.Ticket(p.SaleID(), id)
	if err != nil {
		return refuse.Unavailable
	}
	if p.place, err = q.Place(ctx, p.SaleID(), id); err != nil {
		p.place = queue.Place{State: record.Waiting} // it waits all the same
	}
	p.Ticket = ticket
	meter.CountAttempt(p.SaleID(), "waiting", "")
	return nil
}

// LeadsBack reports whether an attempt that is made again leads its client to the place of its order: by its
// key, or by its ref where the shop has said that this client has a cart with it.
func (u *Usher) LeadsBack(a *sale.Attempt) bool {
	return a.Key != "" || u.Terms.RefIsLookedUp && a.Ref != "" && !a.RefShared
}

// release takes an order out of the line that must not be sent.
func (u *Usher) release(ctx context.Context, p *Queued, id string, no *sale.Refusal) sending.Takeoff {
	if p.Runtime.Queue().Cancel(ctx, p.SaleID(), id, string(no.Reason)) != nil {
		return u.hasLeft(ctx, p, id) // another edge may have sent it
	}
	return sending.Refused(no)
}

// tells is Tell for an order that does not go to the shop now.
func (u *Usher) tells(ctx context.Context, p *Queued, id string) sending.Takeoff {
	if no := u.Tell(ctx, p, id); no != nil {
		return sending.Refused(no)
	}
	return sending.Takeoff{Way: sending.IsAnswered}
}

// hasLeft is the answer about an order that is not in the line any more: a refusal where it was
// released, else its place.
func (u *Usher) hasLeft(ctx context.Context, p *Queued, id string) sending.Takeoff {
	place, err := p.Runtime.Queue().Place(ctx, p.SaleID(), id)
	if err == nil && !place.Sent && (place.State == record.Released || place.State == record.Expired) {
		if reason, known := place.Refused(); known {
			return sending.Refused(sale.Refuse(reason))
		}
		return sending.Refused(refuse.NotSent)
	}
	return u.tells(ctx, p, id) // another edge may have sent it, and the shop may have refused it
}

// Accept answers 202 with the place of the order.
func (u *Usher) Accept(w http.ResponseWriter, r *http.Request, p *Queued) error {
	_, id, _ := p.Runtime.Queue().ReadTicket(p.Ticket)
	p.Publish(r, "waiting", id)
	return waiting.Accept(w, r, p.place, id, u.Terms.Queue.OrdersAt+"/"+p.Ticket)
}
