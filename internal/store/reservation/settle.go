package reservation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// ErrNotFound says that Redis has no such reservation.
var ErrNotFound = errors.New("no such reservation")

// ConflictError says that the reservation's state forbids the operation.
type ConflictError struct{ State record.State }

func (e *ConflictError) Error() string { return fmt.Sprintf("the reservation is %s", e.State) }

// RefundNeededError says that the units were given back and sold to others: a buyer who
// has paid needs a refund.
type RefundNeededError struct{ State record.State }

func (e *RefundNeededError) Error() string {
	return fmt.Sprintf("the reservation is %s and its units are sold to others: refund needed", e.State)
}

// TooSoonError says that until the deadline only the shop or SourceForce may release the
// hold.
type TooSoonError struct{ Left time.Duration }

func (e *TooSoonError) Error() string {
	return fmt.Sprintf("the shop may still sell this reservation for %v: wait, or release it with force", e.Left)
}

// Authority is on whose authority a reservation is settled.
type Authority string

// The sources. SourceOperator and SourceProbe may release only after the deadline.
const (
	SourceAnswer   Authority = "answer"   // the gate saw the shop's answer
	SourceShop     Authority = "shop"     // the shop said so through the API
	SourceUnsent   Authority = "unsent"   // the edge alone could forward the attempt, and did not
	SourceUnheard  Authority = "unheard"  // the edge never heard that the order waits; another edge may have sent it
	SourceOperator Authority = "operator" // an operator
	SourceForce    Authority = "force"    // an operator, also before the deadline
	SourceProbe    Authority = "probe"    // the gate asked the shop
)

// Confirm marks a hold as sold. A second Confirm changes nothing. Units that were given
// back are taken again, and the limits are charged even beyond their maximum, because the
// buyer has paid. If the units are gone, Confirm fails with a *RefundNeededError; with
// SourceAnswer the reservation becomes unbacked instead, because the shop's answer cannot
// be undone. A reservation that the shop has released stays released: a *ConflictError.
func (s *Store) Confirm(ctx context.Context, sale, id string, word Authority, cause string) (record.State, error) {
	return s.settle(ctx, sale, Confirmation(id, word, cause))
}

// Confirmation returns the operation of Confirm.
func Confirmation(id string, word Authority, cause string) shard.Operation {
	return shard.Op(lua.Confirm, id, string(word), cause, "")
}

// Release gives a hold's units back. id may be unknown, because its reserve request may
// still be under way: Release then prevents the reservation from being made, unless the
// source is an operator.
func (s *Store) Release(ctx context.Context, sale, id string, word Authority, cause string) (record.State, error) {
	return s.settle(ctx, sale, s.Releasing(sale, id, word, cause))
}

// Releasing returns the operation of Release.
func (s *Store) Releasing(sale, id string, word Authority, cause string) shard.Operation {
	var notAfter int64
	if word == SourceShop || word == SourceAnswer || word == SourceUnsent || word == SourceUnheard {
		now, ok := s.shard.Clock(sale).Now()
		if !ok {
			now = time.Now().UnixMilli()
		}
		notAfter = now + s.shard.Options.Timeout.Milliseconds()
	}
	return shard.Op(lua.Release, id, string(word), notAfter, cause)
}

// Doubt marks a hold as in doubt: it is unknown whether the shop took the order. It
// returns the reservation's state now.
func (s *Store) Doubt(ctx context.Context, sale, id, cause string) (record.State, error) {
	return s.settle(ctx, sale, shard.Op(lua.Doubt, id, cause))
}

func (s *Store) settle(ctx context.Context, sale string, op shard.Operation) (record.State, error) {
	r, err := s.Resolve(ctx, sale, op)
	return record.State(r.Text(1)), err
}

// Resolve runs one operation on a reservation. A refused operation is an error; the reply
// then has the reservation's state at index 1, if the answer has one.
func (s *Store) Resolve(ctx context.Context, sale string, op shard.Operation) (shard.Reply, error) {
	r, _, err := s.Do(ctx, sale, op)
	return Judged(op.Operation, r, err)
}

// Judged interprets the answer to an operation on a reservation, see Resolve.
func Judged(what *lua.Operation, r shard.Reply, err error) (shard.Reply, error) {
	if err != nil {
		return nil, err
	}
	switch r.Code() {
	case lua.OK:
		return r, nil
	case lua.KeyReused:
		return nil, ErrReused
	case lua.TooMany:
		return r, &TooManyError{Left: r.Number(2)}
	case lua.Conflict:
		return r, &ConflictError{record.State(r.Text(1))}
	case lua.RefundNeeded:
		return r, &RefundNeededError{record.State(r.Text(1))}
	case lua.TooSoon:
		return shard.Reply{r[0], string(record.Held)}, &TooSoonError{r.Duration(1)}
	case lua.NotFound:
		return nil, ErrNotFound
	case lua.Restoring:
		return nil, shard.ErrRestoring
	}
	return nil, fmt.Errorf("%w: %s gave %q", shard.ErrUnavailable, what.Name, r.Code())
}

// expireAtOnce is how many holds one script call ends.
const expireAtOnce = 100

// Expire ends holds whose deadline has passed: they become in doubt (record.ModeResponse)
// or expired (record.ModeBackend). It returns how many it ended, and stops early only on an
// error. A store that has received fewer than two replies cannot tell the time, and ends
// nothing.
func (s *Store) Expire(ctx context.Context, sale string) (int, error) {
	ended, c := 0, s.shard.Clock(sale)
	for {
		known, stepped := c.Stepped(), 0
		if known {
			stepped = 1
		}
		replies, err := s.shard.Run(ctx, sale, shard.Op(lua.Expire, expireAtOnce, stepped))
		if err != nil {
			return ended, err
		}
		ended += int(replies[0].Number(1))
		// a step of the clock that this call has found goes to Redis at once, before edges
		// that do not know of it end anything
		if replies[0].Number(2) == 0 && (known || !c.Stepped()) {
			return ended, nil
		}
	}
}

// Extend sets a hold's deadline to holdFor from now, but at most to longest after it was
// made; a later deadline stays. It returns the hold's deadline, when its token expires,
// its creation and its epoch. It fails with a *ConflictError if the reservation is no
// longer held.
func (s *Store) Extend(ctx context.Context, sale, id string, holdFor, longest time.Duration) (Hold, error) {
	r, err := s.Resolve(ctx, sale, shard.Op(lua.Extend, id, holdFor.Milliseconds(), longest.Milliseconds()))
	if err != nil {
		return Hold{}, err
	}
	return Hold{
		ID: id, Sale: sale, State: record.Held,
		Deadline: r.Time(1), Exp: r.Time(2),
		Epoch: r.Number(3), Created: r.Time(4),
	}, nil
}
