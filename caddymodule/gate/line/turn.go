package line

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/option/waiting"
	"github.com/stockgate/stockgate/caddymodule/gate/sending"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/timing"
	"github.com/stockgate/stockgate/internal/store/queue"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// mostTries is how often an order is sent without reaching its gate, before it is given up.
const mostTries = 3

// sender sends the orders of a gate without their requests, with the edge runtime of its
// configuration.
type sender struct {
	*Usher
	runtime *edgeruntime.Runtime
	misses  misses
}

// ServeLine lets the gate send the orders that wait for it and whose requests are not open, until leave is called.
func (u *Usher) ServeLine(d *edgeruntime.Runtime) (leave func()) {
	if u.Terms.Queue == nil {
		return func() {}
	}
	s := &sender{Usher: u, runtime: d}
	leaves := []func(){d.Queue().Serve(u.prints.order, s), d.Queue().Serve(u.prints.config, s)}
	if u.prints.reads != "" {
		leaves = append(leaves, d.Queue().Serve(u.prints.reads, s))
	}
	return func() {
		for _, end := range leaves {
			end()
		}
	}
}

// GateName is the gate's name.
func (s *sender) GateName() string { return s.Name }

// Server is the name of the gate's server.
func (s *sender) Server() string { return s.serverName() }

// serverName is the name of the gate's server; empty: it has none.
func (u *Usher) serverName() string {
	if u.Server() == nil {
		return ""
	}
	return u.Server().Name()
}

// Pace is how fast the gate's shop takes orders.
func (s *sender) Pace() reservation.Pace { return s.Terms.Queue.ShopPace() }

// Dispatch makes the request of an order again, on the server of the gate.
func (s *sender) Dispatch(ctx context.Context, t queue.Turn, o *queue.Order) {
	if !s.runtime.Begin() {
		return
	}
	defer s.runtime.End()
	q := s.runtime.Queue()
	p := &waiting.Dispatch{Turn: t, Order: o}
	// what has begun to be sent ends, as for a client that leaves
	r, err := p.Request(guard.WithTurn(context.WithoutCancel(ctx), o.Method, o.Header))
	if err == nil && s.Judge.Server() != nil {
		s.serve(r, t)
	}
	switch {
	case p.Arrived:
		s.misses.forget(t.ID)
	case s.tries(t) < mostTries:
		select { // what stands before the gate may fail for a moment only
		case <-time.After(timing.BetweenTries.Now()):
		case <-ctx.Done():
		}
		_ = q.Yield(context.WithoutCancel(ctx), t)
	default:
		s.misses.forget(t.ID)
		s.Log().Error("an order that waited does not reach its gate any more, because another handler answers it or breaks it off: its stock is released",
			zap.String("sale", t.Sale), zap.String("reservation", t.ID), zap.Error(err))
		_ = q.Cancel(context.WithoutCancel(ctx), t.Sale, t.ID, "it did not reach its gate")
	}
}

// tries is how often an order did not reach its gate. An order of a cart may have had turns besides, in which it
// came there and could not be sent.
func (s *sender) tries(t queue.Turn) int64 {
	if s.verifies() {
		return s.misses.add(t.ID)
	}
	return t.Try
}

// serve has the server's handlers serve the request of a turn. One that panics ends the request, as
// net/http has it for requests of connections, and not the process: so does reverse_proxy when the
// shop's answer breaks off.
func (s *sender) serve(r *http.Request, t queue.Turn) {
	defer func() {
		if fault := recover(); fault != nil && fault != http.ErrAbortHandler {
			s.Log().Error("a handler has panicked on an order that is sent without its request: report this to those who made the handler",
				zap.String("sale", t.Sale), zap.String("reservation", t.ID), zap.Any("fault", fault), zap.Stack("stack"))
		}
	}()
	s.Judge.Server().ServeHTTP(waiting.NewRecorder(), r)
}

// ServeTurn sends an order whose turn has come and whose request is not open. Other gates have judged it before: they
// let it pass. isTurn reports whether the request has a turn, and so is served.
func (u *Usher) ServeTurn(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (isTurn bool, err error) {
	dispatch := waiting.DispatchOf(r)
	if dispatch == nil {
		return false, nil
	}
	return true, u.serveTurn(w, r, next, dispatch)
}

func (u *Usher) serveTurn(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, dispatch *waiting.Dispatch) error {
	if u.Terms.Queue == nil || dispatch.Arrived || dispatch.Order.Gate != u.prints.order && dispatch.Order.Gate != u.prints.config {
		return next.ServeHTTP(w, r)
	}
	d, t, o := u.App.Runtime(), dispatch.Turn, dispatch.Order
	listing, ok := d.Catalogue().Sale(t.Sale)
	if !ok {
		return nil
	}
	dispatch.Arrived = true
	guard.Decide(r)
	p := &judge.Case{
		Visit:     judge.Visit{Began: time.Now(), Repl: r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer), Out: w.Header()},
		Requested: judge.Requested{Body: o.Body}, Cart: judge.Cart{Attempt: &o.Attempt}, Judged: judge.Judged{Runtime: d, Listing: listing, Lines: o.Lines},
	}
	if u.Terms.Lookup == nil && o.Config != "" && o.Config != u.prints.config && !u.isAsItWas(r, p, t, o) {
		return nil
	}
	pl := new(forward.InFlightSlot)
	if no := pl.Take(&u.Slots, d, "turn\x00"+t.ID); no != nil {
		return nil // it gets the turn again when this one has ended
	}
	defer pl.GiveBack()
	if u.verifies() && !u.verifyStored(r, p, t, o) {
		return nil
	}
	defer p.EndTurn(r)
	ctx, q, asked := context.WithoutCancel(r.Context()), d.Queue(), time.Now()
	v := u.Terms.VerdictsOf(o)
	hold, err := q.Send(ctx, t, v.HoldFor, v.Margin, v.Mode)
	// another edge has it; or Redis may have heard it, and is told that it was not sent
	if err != nil || u.TimeToForward(&hold, asked) <= 0 {
		if packed, failed := q.Pack(t.Sale, t.ID, o); failed == nil && !errors.Is(err, queue.ErrNotYours) {
			q.Unsent(t, packed, time.Duration(u.Terms.Queue.Longest), u.Terms.Hold.Margin)
		}
		return nil
	}
	hold.Lines, hold.Ref = o.Lines, o.Attempt.Ref
	off := u.Prepare(r, p, pl, hold, asked)
	if off.Way != sending.IsForwarded {
		return nil
	}
	f, timeout := off.Forwarding, off.Timeout
	if f.Rules = v.Rules; v.Mode != u.Terms.Mode() {
		f.Asker = nil
	}
	u.GoesToShop(p, f)
	if v.AtMost > 0 {
		timeout = min(timeout, v.AtMost)
	}
	f.Copy, f.KeepCopy = &forward.Copy{Max: queue.MaxAnswer}, o.KeepCopy
	f.Kept = func(status int, header http.Header, body []byte) {
		u.keepAnswer(ctx, d, t, &queue.Answer{Status: status, Header: header, Body: body})
	}
	err = f.Forward(w, r, next, timeout)
	if f.PutOff == nil {
		return err
	}
	u.putOffStored(ctx, d, t, o, f)
	return nil
}

// isAsItWas reports whether the gate reads in an order's request what was read when its stock was held.
// Else it is not this gate's to send: only an edge with the configuration that has made it can.
func (u *Usher) isAsItWas(r *http.Request, p *judge.Case, t queue.Turn, o *queue.Order) bool {
	what, known := u.unlike(r, p, t.Sale, o)
	if what == "" {
		return known // else it gets the turn again
	}
	u.disown(context.WithoutCancel(r.Context()), p, t, o, what)
	return false
}

// disown leaves an order to edges with the configuration that has made it. what says what this gate reads in another
// way.
func (u *Usher) disown(ctx context.Context, p *judge.Case, t queue.Turn, o *queue.Order, what string) {
	u.Log().Error("this gate reads an order that waits in another way than the configuration that held its stock: the order is not sent with this configuration; start an edge with the one of then, or release it with 'caddy stockgate queue drain'",
		zap.String("sale", t.Sale), zap.String("reservation", t.ID), zap.String("differs", what))
	_ = p.Runtime.Queue().Disown(ctx, t, cmp.Or(o.Reads, o.Config))
}

// keepAnswer keeps the shop's answer to an order whose request is not open, for its buyer.
func (u *Usher) keepAnswer(ctx context.Context, d *edgeruntime.Runtime, t queue.Turn, a *queue.Answer) {
	ctx, cancel := context.WithTimeout(ctx, d.Client().Timeout())
	defer cancel()
	dropped, err := d.Queue().KeepAnswer(ctx, t.Sale, t.ID, a, time.Duration(u.Terms.Queue.Keep), u.Terms.Queue.Memory)
	if err != nil {
		u.Log().Warn("the shop's answer to an order that waited could not be kept for its buyer", zap.String("reservation", t.ID), zap.Error(err))
	}
	if dropped > 0 && d.Queue().TellsAnswersFull() {
		u.Log().Warn("the shop's answers to orders that waited take all of the queue's memory: the oldest are dropped before `keep` is over, and their buyers are told the state only; raise memory or lower keep",
			zap.String("sale", t.Sale), zap.Int64("dropped", dropped))
	}
}
