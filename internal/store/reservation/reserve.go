package reservation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/combine"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// ReserveRequest is what one attempt asks of Redis.
type ReserveRequest struct {
	// ID is the reservation's id, made by the caller: the same id again gives the
	// same answer.
	ID      string
	Sale    string
	Version int64  // of the sale from which the request was computed
	Buyer   string // hashed
	Lines   []sale.Line
	Charges []Charge
	// Unpaid are the counters of unpaid holds that the request concerns; the zero value
	// counts nothing.
	Unpaid  Owed
	HoldFor time.Duration
	Margin  time.Duration // the token expires this long before the hold
	Mode    record.Mode
	// Binding prevents a second reservation for the same attempt; the zero value binds
	// nothing.
	Binding Binding
	// Ref is the shop's own name of the order; empty: none. With RefShared it names one
	// order for all buyers, otherwise each buyer may have an order of that name.
	Ref       string
	RefShared bool
	// Gate is the name of the gate that asks; empty: it has none.
	Gate string
	// Queue lets the order wait where others wait before it, or the shop has enough; nil: it
	// goes to the shop at once. The hold is Waiting then.
	Queue *QueueOptions

	// View learns from the answer which units are left; nil: no view does.
	View View
	// Recall is called when the request's turn to be sent comes. It returns the refusal of a request
	// whose units are known to be gone by now, or nil to ask Redis. Default: Redis is asked. It must
	// not block, and may be called in any goroutine, also after Reserve has returned.
	Recall func() *sale.Refusal
}

// View is what an edge knows of the units of a sale.
type View interface {
	// Got is called when lines were held, by the entry with number seq of the sale's
	// journal or one before it.
	Got(lines []sale.Line, seq int64)
	// Refused is called when a line was refused: after the entry with number seq its cell
	// had so many available units, and so many that are available or may come back.
	Refused(line *sale.Line, seq, available, left int64)
}

// Charge is what an attempt costs of one purchase limit.
type Charge struct {
	Limit  *sale.Limit
	Field  string // limit | window | identity hash
	Amount int64
	// From and To bound the window in ms by Redis's own time.
	From, To int64
	// Again is when the counter restarts, in ms; 0: waiting does not help.
	Again int64
}

// Hold is stock held for one attempt.
type Hold struct {
	ID       string
	Sale     string
	State    record.State
	Deadline time.Time // in Redis's own time, like all times here
	Exp      time.Time // when the token expires
	Created  time.Time
	Epoch    int64
	// Lines are the held units.
	Lines []sale.Line
	// Ref is the shop's own name of the order; empty: none.
	Ref string
	// Shadow is the refusal of a limit in shadow, which held the stock all the same; nil: none
	// would have refused.
	Shadow *sale.Refusal
}

// ErrVersion says that the sale has changed. Nothing was charged; load it and try again.
var ErrVersion = errors.New("the sale has changed")

// ErrWindow says that a limit is in another window than the request was computed for.
// Nothing was charged; compute the charges for the present time and try again.
var ErrWindow = errors.New("another window of a purchase limit has begun")

// WindowError is ErrWindow with Redis's own time, which may be ahead of the edge's
// estimate.
type WindowError struct{ Now time.Time }

func (e *WindowError) Error() string        { return ErrWindow.Error() }
func (e *WindowError) Is(target error) bool { return target == ErrWindow }

// ErrLate says that the reserve request reached Redis after the caller's deadline. Nothing
// was charged.
var ErrLate = errors.New("the reserve came too late")

// Reserve holds stock for a request, or returns the refusal. ctx must have a deadline: the
// script does not run after it. The error is:
//
//   - a *AlreadyBound if the request's key or ref belongs to another reservation
//   - ErrVersion, ErrWindow or ErrLate if nothing was charged
//   - a shard.ErrUnavailable if it is unknown whether the script ran: repeat the request
//     with the same id, or release the id
func (s *Store) Reserve(ctx context.Context, c *ReserveRequest) (Hold, *sale.Refusal, error) {
	if err := c.check(); err != nil {
		return Hold{}, nil, err
	}
	t := &Call{Request: request{claim: c.encode()}, Weight: 4 + len(c.Lines) + len(c.Charges) + len(c.Unpaid.Fields)}
	a, err := s.Calls.Do(ctx, c.Sale, t)
	if errors.Is(err, combine.ErrBusy) {
		return Hold{}, sale.Refuse(sale.Busy), nil
	}
	if errors.Is(err, ErrAtRisk) {
		return Hold{}, refuseAtRisk, nil
	}
	if err != nil {
		return Hold{}, nil, err
	}
	if a.gone != nil {
		return Hold{}, a.gone, nil
	}
	return s.reserved(c, a.Reply)
}

// check refuses what no edge asks for.
func (c *ReserveRequest) check() error {
	if len(c.Lines) == 0 {
		return fmt.Errorf("reservation %s has no lines", c.ID)
	}
	for _, l := range c.Lines {
		if l.Quantity < 1 { // would make units out of nothing
			return fmt.Errorf("reservation %s has %d units of %s", c.ID, l.Quantity, l.SKU)
		}
	}
	if !validRef(c.Ref) {
		return fmt.Errorf("reservation %s: a ref has 1 to 128 printable ASCII characters without space", c.ID)
	}
	return nil
}

// learn lets the edge's view learn from the reply to a reserve request. seq is the shard's after
// the call. A refusal for lack of units has a seq of its own, because later operations of the same
// call may have given units back.
func (c *encodedRequest) learn(seq int64, r shard.Reply) {
	view, lines := c.of.View, c.of.Lines
	if view == nil {
		return
	}
	switch r.Code() {
	case lua.OK:
		view.Got(lines, seq)
	case lua.SoldOut, lua.AllHeld:
		view.Refused(missing(lines, r), r.Number(4), r.Number(2), r.Number(3))
	}
}

// missing is the line whose units are not there.
func missing(lines []sale.Line, r shard.Reply) *sale.Line {
	return &lines[min(int(r.Number(1)), len(lines))-1]
}

// reserved reads the reply to a reserve request.
func (s *Store) reserved(c *ReserveRequest, r shard.Reply) (Hold, *sale.Refusal, error) {
	charge := func() *Charge { return &c.Charges[min(int(r.Number(1)), len(c.Charges))-1] }
	switch r.Code() {
	case lua.OK:
		return Hold{
			ID: c.ID, Sale: c.Sale, State: record.State(r.Text(1)),
			Deadline: r.Time(2), Exp: r.Time(3),
			Epoch: r.Number(4), Created: r.Time(5), Lines: c.Lines, Ref: c.Ref, Shadow: c.shadowRefusal(r.Number(6)),
		}, nil, nil
	case lua.Bound:
		return Hold{}, nil, ReadBound(c.Sale, r)
	case lua.StaleVersion:
		return Hold{}, nil, ErrVersion
	case lua.Window:
		return Hold{}, nil, &WindowError{r.Time(1)}
	case lua.Late, lua.Gone:
		return Hold{}, nil, ErrLate
	case lua.NoSale:
		return Hold{}, RefuseLost, nil // the edge has read it from there
	case lua.NotStarted:
		return Hold{}, RefuseNotStarted(r), nil
	case lua.Paused:
		return Hold{}, sale.Refuse(sale.PausedSale), nil
	case lua.Ended:
		return Hold{}, sale.Refuse(sale.Ended), nil
	case lua.Closed:
		return Hold{}, sale.Refuse(sale.ClosedSale), nil
	case lua.LimitReached:
		return Hold{}, &sale.Refusal{Reason: sale.LimitReached, Limit: charge().Limit, RetryAfter: s.secondsUntil(c.Sale, charge().Again)}, nil
	case lua.Pending: // a hold of the same buyer reaches the limit; it ends long before the window
		return Hold{}, &sale.Refusal{Reason: sale.Pending, Limit: charge().Limit}, nil
	case lua.Unpaid:
		return Hold{}, &sale.Refusal{Reason: sale.TooManyUnpaid, RetryAfter: (r.Number(1) + 999) / 1000}, nil
	case lua.QueueFull:
		return Hold{}, sale.Refuse(sale.Busy), nil
	case lua.Unknown:
		// this version of the sale lists the item: another client has deleted its stock
		return Hold{}, RefuseLost, nil
	case lua.SoldOut:
		return Hold{}, &sale.Refusal{Reason: sale.SoldOut, SKU: missing(c.Lines, r).SKU}, nil
	case lua.AllHeld:
		return Hold{}, &sale.Refusal{Reason: sale.AllHeld, SKU: missing(c.Lines, r).SKU}, nil
	case lua.NotYourTurn:
		return Hold{}, &sale.Refusal{Reason: sale.NotYourTurn, SKU: missing(c.Lines, r).SKU}, nil
	}
	return Hold{}, nil, fmt.Errorf("%w: reserve gave %q", shard.ErrUnavailable, r.Code())
}

// RefuseNotStarted is the refusal of a reply that says when the sale starts.
func RefuseNotStarted(r shard.Reply) *sale.Refusal {
	refusal := sale.Refuse(sale.NotStarted)
	if starts := r.Number(1); starts > 0 {
		refusal.RetryAfter = (starts - r.Number(2) + 999) / 1000
	}
	return refusal
}

// shadowRefusal is what a limit in shadow would have refused; nil: nothing. over is its number,
// negative where holds may still free it.
func (c *ReserveRequest) shadowRefusal(over int64) *sale.Refusal {
	reason := sale.LimitReached
	if over < 0 {
		reason, over = sale.Pending, -over
	}
	if over == 0 || over > int64(len(c.Charges)) {
		return nil
	}
	return &sale.Refusal{Reason: reason, Limit: c.Charges[over-1].Limit}
}

// secondsUntil returns the seconds until a time in ms by the clock of the sale's Redis,
// rounded up; 0: the time is 0, or past.
func (s *Store) secondsUntil(sale string, at int64) int64 {
	now, ok := s.shard.Clock(sale).Now()
	if !ok || at <= now {
		return 0
	}
	return (at - now + 999) / 1000
}

// RefuseLost is the refusal of attempts on a sale that Redis has lost.
var RefuseLost = sale.Refuse(sale.Unavailable)
