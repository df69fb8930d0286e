package reservation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/lua"
)

// ErrNotFound: Redis knows no such reservation.
var ErrNotFound = errors.New("no such reservation")

// ConflictError: the state that holds forbids the operation.
type ConflictError struct{ State State }

func (e *ConflictError) Error() string { return fmt.Sprintf("the reservation is %s", e.State) }

// RefundNeededError: the units were given back and are gone; who paid needs his
// money back.
type RefundNeededError struct{ State State }

func (e *RefundNeededError) Error() string {
	return fmt.Sprintf("the reservation is %s and its units are sold to others: refund needed", e.State)
}

// TooSoonError: until the deadline only the shop's word releases the hold.
type TooSoonError struct{ Left time.Duration }

func (e *TooSoonError) Error() string {
	return fmt.Sprintf("the shop may still sell this reservation for %v: wait, or release it with force", e.Left)
}

// Word says whose word an outcome is.
type Word string

// Answer: the gate saw the shop's answer. Shop: the shop said so through its API. Unsent: the attempt was never forwarded. Operator and Probe (the
// gate asked the shop) may release only after the deadline; Force is the operator's
// word at once.
const (
	Answer   Word = "answer"
	Shop     Word = "shop"
	Unsent   Word = "unsent"
	Operator Word = "operator"
	Force    Word = "force"
	Probe    Word = "probe"
)

// Confirm marks a hold as sold. The same again changes nothing. Units that were
// given back are taken again, and the limits charged without being asked: he has
// paid. When they are gone it fails with a RefundNeededError; after an Answer, which
// nobody can take back, the reservation becomes Unbacked instead. What was released
// stays released by the Shop's word: a ConflictError.
func (s *Store) Confirm(ctx context.Context, sale, id string, word Word, cause string) (State, error) {
	return s.settle(ctx, sale, confirmation(id, word, cause))
}

func confirmation(id string, word Word, cause string) operation {
	return operation{"confirm", []any{id, string(word), cause, ""}}
}

// Release gives a hold's units back. With a lost reserve in mind, id may be
// unknown: then it cannot be reserved any more. Operators' words leave no such
// trace for an unknown id.
func (s *Store) Release(ctx context.Context, sale, id string, word Word, cause string) (State, error) {
	return s.settle(ctx, sale, s.releasing(sale, id, word, cause))
}

func (s *Store) releasing(sale, id string, word Word, cause string) operation {
	var notAfter int64
	if word == Shop || word == Answer || word == Unsent {
		now, ok := s.clock(sale).now()
		if !ok {
			now = time.Now().UnixMilli()
		}
		notAfter = now + s.options.Timeout.Milliseconds()
	}
	return operation{"release", []any{id, string(word), notAfter, cause}}
}

// Doubt marks a hold of which nobody knows whether the shop took the order. It
// returns the state that holds now.
func (s *Store) Doubt(ctx context.Context, sale, id, cause string) (State, error) {
	return s.settle(ctx, sale, operation{"doubt", []any{id, cause}})
}

func (s *Store) settle(ctx context.Context, sale string, op operation) (State, error) {
	r, err := s.resolve(ctx, sale, op)
	return State(r.word(1)), err
}

// resolve runs one operation on a reservation. What it refuses is an error; the
// reply's first particular is then the state that holds, if the answer tells one.
func (s *Store) resolve(ctx context.Context, sale string, op operation) (reply, error) {
	r, _, err := s.do(ctx, sale, op)
	return judged(op.name, r, err)
}

// judged reads the answer to an operation on a reservation, see resolve.
func judged(name string, r reply, err error) (reply, error) {
	if err != nil {
		return nil, err
	}
	switch r.code() {
	case lua.OK:
		return r, nil
	case lua.KeyReused:
		return nil, ErrReused
	case lua.TooMany:
		return r, &TooManyError{Left: r.number(2)}
	case lua.Conflict:
		return r, &ConflictError{State(r.word(1))}
	case lua.RefundNeeded:
		return r, &RefundNeededError{State(r.word(1))}
	case lua.TooSoon:
		return reply{r[0], string(Held)}, &TooSoonError{time.Duration(r.number(1)) * time.Millisecond}
	case lua.NotFound:
		return nil, ErrNotFound
	case lua.Restoring:
		return nil, ErrRestoring
	}
	return nil, fmt.Errorf("%w: %s gave %q", ErrUnavailable, name, r.code())
}

// expireAtOnce is how many holds one script call ends.
const expireAtOnce = 100

// Expire ends holds whose deadline has passed: in doubt (Response) or expired
// (Backend). It returns how many; it stops early only on an error. A store that has heard
// less than two replies cannot tell how late it is, and ends nothing.
func (s *Store) Expire(ctx context.Context, sale string) (int, error) {
	ended, c := 0, s.clock(sale)
	for {
		known, stepped := c.stepped(), 0
		if known {
			stepped = 1
		}
		replies, err := s.run(ctx, s.scripts.Settle, sale, operation{"expire", []any{expireAtOnce, stepped}})
		if err != nil {
			return ended, err
		}
		ended += int(replies[0].number(1))
		// a step that this call was the first to see is told at once, before other edges
		// that do not know of it end anything
		if replies[0].number(2) == 0 && (known || !c.stepped()) {
			return ended, nil
		}
	}
}
