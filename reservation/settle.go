package reservation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/shard"
)

// ErrNotFound: Redis knows no such reservation.
var ErrNotFound = errors.New("no such reservation")

// ConflictError: the state that holds forbids the operation.
type ConflictError struct{ State record.State }

func (e *ConflictError) Error() string { return fmt.Sprintf("the reservation is %s", e.State) }

// RefundNeededError: the units were given back and are gone; who paid needs his
// money back.
type RefundNeededError struct{ State record.State }

func (e *RefundNeededError) Error() string {
	return fmt.Sprintf("the reservation is %s and its units are sold to others: refund needed", e.State)
}

// TooSoonError: until the deadline only the shop's word releases the hold.
type TooSoonError struct{ Left time.Duration }

func (e *TooSoonError) Error() string {
	return fmt.Sprintf("the shop may still sell this reservation for %v: wait, or release it with force", e.Left)
}

// Word says whose word an outcome is.
type Source string

// Answer: the gate saw the shop's answer. Shop: the shop said so through its API. Unsent: the attempt was never forwarded. Operator and Probe (the
// gate asked the shop) may release only after the deadline; Force is the operator's
// word at once.
const (
	Answer         Source = "answer"
	SourceShop     Source = "shop"
	SourceUnsent   Source = "unsent"
	SourceOperator Source = "operator"
	SourceForce    Source = "force"
	SourceProbe    Source = "probe"
)

// Confirm marks a hold as sold. The same again changes nothing. Units that were
// given back are taken again, and the limits charged without being asked: he has
// paid. When they are gone it fails with a RefundNeededError; after an Answer, which
// nobody can take back, the reservation becomes Unbacked instead. What was released
// stays released by the Shop's word: a ConflictError.
func (s *Store) Confirm(ctx context.Context, sale, id string, word Source, cause string) (record.State, error) {
	return s.settle(ctx, sale, Confirmation(id, word, cause))
}

func Confirmation(id string, word Source, cause string) shard.Operation {
	return shard.Op("confirm", id, string(word), cause, "")
}

// Release gives a hold's units back. With a lost reserve in mind, id may be
// unknown: then it cannot be reserved any more. Operators' words leave no such
// trace for an unknown id.
func (s *Store) Release(ctx context.Context, sale, id string, word Source, cause string) (record.State, error) {
	return s.settle(ctx, sale, s.Releasing(sale, id, word, cause))
}

func (s *Store) Releasing(sale, id string, word Source, cause string) shard.Operation {
	var notAfter int64
	if word == SourceShop || word == Answer || word == SourceUnsent {
		now, ok := s.shard.Clock(sale).Now()
		if !ok {
			now = time.Now().UnixMilli()
		}
		notAfter = now + s.shard.Options.Timeout.Milliseconds()
	}
	return shard.Op("release", id, string(word), notAfter, cause)
}

// Doubt marks a hold of which nobody knows whether the shop took the order. It
// returns the state that holds now.
func (s *Store) Doubt(ctx context.Context, sale, id, cause string) (record.State, error) {
	return s.settle(ctx, sale, shard.Op("doubt", id, cause))
}

func (s *Store) settle(ctx context.Context, sale string, op shard.Operation) (record.State, error) {
	r, err := s.Resolve(ctx, sale, op)
	return record.State(r.Text(1)), err
}

// resolve runs one operation on a reservation. What it refuses is an error; the
// reply's first particular is then the state that holds, if the answer tells one.
func (s *Store) Resolve(ctx context.Context, sale string, op shard.Operation) (shard.Reply, error) {
	r, _, err := s.Do(ctx, sale, op)
	return Judged(op.Name, r, err)
}

// judged reads the answer to an operation on a reservation, see resolve.
func Judged(name string, r shard.Reply, err error) (shard.Reply, error) {
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
		return shard.Reply{r[0], string(record.Held)}, &TooSoonError{time.Duration(r.Number(1)) * time.Millisecond}
	case lua.NotFound:
		return nil, ErrNotFound
	case lua.Restoring:
		return nil, shard.ErrRestoring
	}
	return nil, fmt.Errorf("%w: %s gave %q", shard.ErrUnavailable, name, r.Code())
}

// expireAtOnce is how many holds one script call ends.
const expireAtOnce = 100

// Expire ends holds whose deadline has passed: in doubt (Response) or expired
// (Backend). It returns how many; it stops early only on an error. A store that has heard
// less than two replies cannot tell how late it is, and ends nothing.
func (s *Store) Expire(ctx context.Context, sale string) (int, error) {
	ended, c := 0, s.shard.Clock(sale)
	for {
		known, stepped := c.Stepped(), 0
		if known {
			stepped = 1
		}
		replies, err := s.shard.Run(ctx, s.shard.Scripts.Settle, sale, shard.Op("expire", expireAtOnce, stepped))
		if err != nil {
			return ended, err
		}
		ended += int(replies[0].Number(1))
		// a step that this call was the first to see is told at once, before other edges
		// that do not know of it end anything
		if replies[0].Number(2) == 0 && (known || !c.Stepped()) {
			return ended, nil
		}
	}
}
