package line

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/option/waiting"
	"github.com/stockgate/stockgate/caddymodule/gate/sending"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// The shop may answer that it wants an order later, by the option again of the queue. The order then waits as it did
// before.

// PutOff lets an order wait again, and its client with it.
func (u *Usher) PutOff(r *http.Request, p *Queued, pl *forward.InFlightSlot, f *forward.Forwarding) sending.Takeoff {
	p.EndTurn(r)
	ctx, id, q := context.WithoutCancel(r.Context()), f.Hold.ID, p.Runtime.Queue()
	packed, err := u.pack(r, &p.Case, id)
	if err == nil {
		p.waiter = q.Enter(p.SaleID(), id, u.prints.order, packed)
		err = u.waitAgain(ctx, q, queue.Turn{Sale: p.SaleID(), ID: id, Try: p.try}, packed, f)
	}
	if err == nil {
		p.waiter.Wait()
		return u.Await(r, p, pl, f.Hold)
	}
	if p.waiter != nil {
		p.waiter.Leave()
		p.waiter = nil
	}
	if u.putOffTooOften(ctx, p.Runtime, p.SaleID(), id, err) {
		return sending.Refused(refuse.NotSent)
	}
	return u.tells(ctx, p, id)
}

// putOffStored is PutOff for an order that was sent without its request.
func (u *Usher) putOffStored(ctx context.Context, d *edgeruntime.Runtime, t queue.Turn, o *queue.Order, f *forward.Forwarding) {
	packed, err := d.Queue().Pack(t.Sale, t.ID, o)
	if err == nil {
		err = u.waitAgain(ctx, d.Queue(), t, packed, f)
	}
	if err != nil {
		u.putOffTooOften(ctx, d, t.Sale, t.ID, err)
	}
}

// waitAgain puts an order into the line again.
func (u *Usher) waitAgain(ctx context.Context, q *queue.Queue, t queue.Turn, packed []byte, f *forward.Forwarding) error {
	return q.Again(ctx, t, u.prints.order, packed, time.Duration(u.Terms.Queue.Longest), u.Terms.Hold.Margin, *f.PutOff, waiting.MostAgain)
}

// putOffTooOften releases an order that the shop has put off as often as it may, and says
// whether that is so. After any other error Redis may have heard that it waits again: it is sent
// once more, or in doubt at its deadline.
func (u *Usher) putOffTooOften(ctx context.Context, d *edgeruntime.Runtime, saleID, id string, err error) bool {
	if !errors.Is(err, queue.ErrTooOften) {
		u.Log().Warn("redis did not say whether an order that the shop wants later waits again: if not, it is in doubt at its deadline",
			zap.String("sale", saleID), zap.String("reservation", id), zap.Error(err))
		return false
	}
	meter.CountAttempt(saleID, "released", "")
	_, _ = d.ReleaseEventually(ctx, saleID, id, reservation.SourceShop, "put off too often")
	return true
}
