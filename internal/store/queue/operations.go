package queue

import (
	"context"
	"errors"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// ErrNotYours says that another edge has the turn of the order, or that it does not wait.
var ErrNotYours = errors.New("the order is not this edge's to send")

// ErrAtShop says that the order was sent already.
var ErrAtShop = errors.New("the order was sent to the shop already")

// ErrTooOften says that the shop has put an order off as often as it may.
var ErrTooOften = errors.New("the shop has put the order off too often")

func (q *Queue) do(ctx context.Context, sale string, op shard.Operation) (shard.Reply, error) {
	r, _, err := q.Store.Do(combine.Within(ctx, q.shard.Timeout()), sale, op)
	if err == nil {
		switch r.Code() {
		case lua.AtShop:
			return r, ErrAtShop
		case lua.TooMany:
			return r, ErrTooOften
		}
	}
	return reservation.Judged(op.Operation, r, err)
}

// settled says that Redis knows how a reservation has ended, or does not know it at all.
func settled(err error) bool {
	_, conflict := errors.AsType[*reservation.ConflictError](err)
	return conflict || errors.Is(err, reservation.ErrNotFound)
}

// Send says that the order of a turn is sent now. It returns the hold, which starts over. Only
// after it may the order go to the shop, and then at once: no other edge sends it any more.
// hold has the times and the mode.
//
// It waits while the order may not go by the pace: turns that came one after the other may be used at
// the same time, after the edge was cut off.
//
// An ErrNotYours says that the order must not be sent. After any other error it must not be
// either, and not be released: Unsent says so.
func (q *Queue) Send(ctx context.Context, t Turn, holdFor, margin time.Duration, mode record.Mode) (reservation.Hold, error) {
	l := q.line(t.Sale)
	var r shard.Reply
	var err error
	for try := 0; ; try++ {
		pace := l.paceNow()
		op := shard.Op(lua.Send, t.ID, q.Edge, t.Try, string(mode), holdFor.Milliseconds(), margin.Milliseconds(), pace.Orders, pace.Per.Milliseconds())
		r, err = q.do(ctx, t.Sale, op)
		if err == nil && q.Kept != nil {
			err = q.Kept(ctx, t.Sale)
		}
		if err == nil {
			return reservation.Hold{
				ID: t.ID, Sale: t.Sale, State: record.Held, Deadline: r.Time(2), Exp: r.Time(3), Epoch: r.Number(4), Created: r.Time(5),
			}, nil
		}
		if settled(err) {
			return reservation.Hold{}, ErrNotYours
		}
		if early, ok := errors.AsType[*reservation.TooSoonError](err); ok {
			if !l.awaitPace(ctx, early.Left, pace) {
				return reservation.Hold{}, ErrNotYours // the turn ends by itself
			}
			try = -1
			continue
		}
		if try == 2 || ctx.Err() != nil {
			return reservation.Hold{}, err
		}
	}
}

// Again lets an order that the shop has put off wait again, before all others. No order goes to
// the shop for that time. t is the turn with which it was sent; its Try is 0 where it went at once. A
// repeat that comes late, when the order was sent again, changes nothing.
func (q *Queue) Again(ctx context.Context, t Turn, gate string, packed []byte, longest, margin, later time.Duration, most int) error {
	_, err := q.do(ctx, t.Sale, shard.Op(lua.Again, t.ID, q.Edge, t.Try, longest.Milliseconds(), margin.Milliseconds(), gate, packed, later.Milliseconds(), most))
	return err
}

// unsentFor is how long an edge tries to say that it has not sent an order.
const unsentFor = time.Minute

// Unsent says, in the background, that the order of a turn was not sent, after a Send of which the
// caller does not know whether Redis has heard it: it waits on, at the head of the line, and packed is
// what is to be sent. The caller must not send it with this turn any more. Should Redis not hear this
// either, the order is in doubt at its deadline if it has heard Send, and if not, another edge may send it.
func (q *Queue) Unsent(t Turn, packed []byte, longest, margin time.Duration) {
	op := shard.Op(lua.Yield, t.ID, q.Edge, t.Try, packed, longest.Milliseconds(), margin.Milliseconds())
	q.mu.Lock()
	defer q.mu.Unlock()
	q.goLocked(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for end := time.Now().Add(unsentFor); time.Now().Before(end); timer.Reset(afterError) {
			select {
			case <-timer.C:
			case <-q.ctx.Done():
				return
			}
			if _, err := q.do(q.ctx, t.Sale, op); err == nil || settled(err) {
				return
			}
		}
	})
}

// Disown says that this edge has the gate of an order and reads another order in it: from now on only
// an edge whose gate has that print can send it.
func (q *Queue) Disown(ctx context.Context, t Turn, print string) error {
	_, err := q.do(ctx, t.Sale, shard.Op(lua.Yield, t.ID, q.Edge, t.Try, "", 0, 0, print))
	return err
}

// stepsBack is by how many numbers of the journal an order steps back: at most so many orders that came
// after it go first then.
const stepsBack = 100

// StepBack says that the order of a turn cannot be sent now, for a reason that is its own or may be: orders
// that came soon after it go first. open: its request is open at this edge, which gets its next turn as well.
func (q *Queue) StepBack(ctx context.Context, t Turn, open bool) error {
	here := 0
	if open {
		here = 1
	}
	_, err := q.do(ctx, t.Sale, shard.Op(lua.Yield, t.ID, q.Edge, t.Try, "", 0, 0, "", stepsBack, here))
	return err
}

// Yield lets another edge send the order of a turn.
func (q *Queue) Yield(ctx context.Context, t Turn) error {
	_, err := q.do(ctx, t.Sale, shard.Op(lua.Yield, t.ID, q.Edge, t.Try))
	return err
}

// Cancel takes an order out of the line and releases its stock. The error is ErrAtShop if it
// was sent already, and a *reservation.ConflictError if its reservation has ended otherwise.
func (q *Queue) Cancel(ctx context.Context, sale, id, cause string) error {
	_, err := q.do(ctx, sale, shard.Op(lua.Leave, id, cause))
	return err
}

// Place is where an order stands.
type Place struct {
	// State is record.Waiting, or the state of the reservation. Held: the shop has the order.
	State record.State
	// Number says how many orders go to the shop before it, and itself; 0: it is not known.
	Number int64
	// About is how long that takes at the pace of the last seconds; 0: no order went to the shop
	// lately, so that it is not known.
	About time.Duration
	// Still says that the order does not go to the shop now: an operator has paused the line, the
	// shop has asked for later, or no edge can send it.
	Still bool
	// Until is when the order leaves the line, if it was not sent.
	Until time.Time
	// Sent says that the order was sent to the shop, and Answered that the shop has answered, as
	// far as Redis has heard.
	Sent, Answered bool
	// Cause is why the order left the line without being sent; empty: it did not, or was not released.
	Cause string
}

// Refused returns the reason of a refusal for which an order was not sent; false: it has left the line for another cause,
// or not at all.
func (p Place) Refused() (sale.Reason, bool) {
	switch reason := sale.Reason(p.Cause); reason {
	case sale.CartChanged, sale.NoCart, sale.NoBuyer:
		return reason, p.State == record.Released
	}
	return "", false
}

// Place asks where an order stands. The error is a reservation.ErrNotFound for one that is not
// known.
func (q *Queue) Place(ctx context.Context, sale, id string) (Place, error) {
	r, err := q.do(ctx, sale, shard.Op(lua.Place, id))
	if err != nil {
		return Place{}, err
	}
	p := Place{State: record.State(r.Text(1)), Number: r.Number(2), Still: r.Number(5) == 1, Until: r.Time(6), Sent: r.Number(7) > 0, Answered: r.Number(7) == 2, Cause: r.Text(8)}
	p.About = about(p.Number, r.Number(3), r.Number(4))
	return p, nil
}

// about is how long so many orders take, when left orders have left in so many seconds.
func about(orders, left, seconds int64) time.Duration {
	if left == 0 || seconds == 0 {
		return 0
	}
	return time.Duration(orders) * time.Duration(seconds) * time.Second / time.Duration(left)
}

// State is that of a line.
type State struct {
	Waiting, AtShop, Bytes int64
	Paused                 bool
	// HeldUp is for how long the shop has asked to get no order.
	HeldUp time.Duration
	// Oldest is how long the first order has waited.
	Oldest time.Duration
	// Pace is how many orders a second went to the shop in the last seconds; 0: none did.
	Pace float64
	// Released is how many orders Drain has released.
	Released int64
	// Skipped is how many of the orders that wait no edge can send: none has their gate. They stop
	// nothing behind them.
	Skipped int64
}

// Show returns the state of a sale's line.
func Show(ctx context.Context, s *reservation.Store, sale string) (State, error) {
	return change(ctx, s, sale, "show", 0, "")
}

// Pause lets no order of a sale go to the shop until Resume. What is at the shop goes on.
func Pause(ctx context.Context, s *reservation.Store, sale string) (State, error) {
	return change(ctx, s, sale, "pause", 0, "")
}

// Resume ends Pause, and what the shop has asked for.
func Resume(ctx context.Context, s *reservation.Store, sale string) (State, error) {
	return change(ctx, s, sale, "resume", 0, "")
}

// drainAtOnce is how many orders one call releases.
const drainAtOnce = 200

// Drain releases orders that wait, the first ones first: at most so many. cause says who wants
// that. After an error the state says how many it has released; the others go on.
func Drain(ctx context.Context, s *reservation.Store, sale, cause string, most int64) (State, error) {
	released := int64(0)
	for {
		state, err := change(ctx, s, sale, "drain", min(most, drainAtOnce), cause)
		if err != nil {
			return State{Released: released}, err
		}
		released += state.Released
		if most -= drainAtOnce; most <= 0 || state.Waiting == 0 {
			state.Released = released
			return state, nil
		}
	}
}

func change(ctx context.Context, s *reservation.Store, sale, does string, most int64, cause string) (State, error) {
	r, _, err := s.Do(ctx, sale, shard.Op(lua.Line, does, most, cause))
	if r, err = reservation.Judged(lua.Line, r, err); err != nil {
		return State{}, err
	}
	st := State{
		Waiting: r.Number(1), AtShop: r.Number(2), Bytes: r.Number(3), Paused: r.Number(4) == 1, HeldUp: time.Duration(r.Number(5)) * time.Millisecond,
		Oldest: time.Duration(r.Number(6)) * time.Millisecond, Released: r.Number(9), Skipped: r.Number(10),
	}
	if seconds := r.Number(8); seconds > 0 {
		st.Pace = float64(r.Number(7)) / float64(seconds)
	}
	return st, nil
}

// DropAnswer drops what is kept for an order's buyer. Their place then tells the state of the order only.
func DropAnswer(ctx context.Context, s *reservation.Store, sale, id string) error {
	client := s.Shard()
	_, err := client.Eval(ctx, lua.KeepAnswer, client.QueueAnswersKeys(sale, id), []any{id, "", 1, -1}, 0)
	return err
}
