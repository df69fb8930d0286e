package reservation_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// What the scripts answer reaches the caller as a state or as an error that says
// what to do.
func TestAnswers(t *testing.T) {
	type answer struct {
		state record.State
		err   error // compared by type and text
	}
	conflict := func(s record.State) error { return &reservation.ConflictError{State: s} }
	refund := func(s record.State) error { return &reservation.RefundNeededError{State: s} }
	tests := map[string]struct {
		do   func(ctx context.Context, s *reservation.Store) (record.State, error)
		want answer
	}{
		"confirm a hold":      {confirm("held", reservation.SourceShop), answer{"confirmed", nil}},
		"confirm again":       {confirm("confirmed", reservation.SourceShop), answer{"confirmed", nil}},
		"confirm too late":    {confirm("released", reservation.SourceShop), answer{"released", conflict("released")}},
		"confirm without":     {confirm("released", reservation.SourceOperator), answer{"released", refund("released")}},
		"confirm nothing":     {confirm("nothing", reservation.SourceAnswer), answer{"", reservation.ErrNotFound}},
		"confirm and note":    {confirm("released", reservation.SourceAnswer), answer{"unbacked", nil}},
		"release a hold":      {release("held", reservation.SourceShop), answer{"released", nil}},
		"release the sold":    {release("confirmed", reservation.SourceForce), answer{"confirmed", conflict("confirmed")}},
		"release too soon":    {release("held", reservation.SourceOperator), answer{"held", &reservation.TooSoonError{}}},
		"release nothing":     {release("nothing", reservation.SourceOperator), answer{"", reservation.ErrNotFound}},
		"release in advance":  {release("nothing", reservation.SourceUnsent), answer{"tombstone", nil}},
		"doubt a hold":        {doubt("held"), answer{"in_doubt", nil}},
		"doubt the confirmed": {doubt("confirmed"), answer{"confirmed", nil}},
		"doubt nothing":       {doubt("nothing"), answer{"", reservation.ErrNotFound}},
	}
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				if err := b.Client().FlushAll(stocktest.Soon(t)).Err(); err != nil {
					t.Fatal(err)
				}
				e := stocktest.Selling(t, stocktest.Options(b), 3)
				for _, id := range []string{"held", "confirmed", "released"} {
					stocktest.MustHold(t, e, id, "Ann", 1)
				}
				e.Store.Confirm(stocktest.Soon(t), "s", "confirmed", reservation.SourceShop, "")
				e.Store.Release(stocktest.Soon(t), "s", "released", reservation.SourceShop, "")
				stocktest.MustHold(t, e, "other", "Bob", 1)
				state, err := test.do(stocktest.Soon(t), e.Store)
				var soonErr *reservation.TooSoonError
				switch {
				case state != test.want.state:
					t.Errorf("the state is %q, want %q", state, test.want.state)
				case errors.As(test.want.err, &soonErr):
					if !errors.As(err, &soonErr) || soonErr.Left <= 0 || soonErr.Left > stocktest.HoldOptions.HoldFor {
						t.Errorf("the error is %v, want too soon", err)
					}
				case (err == nil) != (test.want.err == nil) || err != nil && err.Error() != test.want.err.Error():
					t.Errorf("the error is %v, want %v", err, test.want.err)
				}
				stocktest.Balanced(t, b.Client(), e.Store, "s")
			})
		}
	})
}

type settling = func(context.Context, *reservation.Store) (record.State, error)

func confirm(id string, word reservation.Authority) settling {
	return func(ctx context.Context, s *reservation.Store) (record.State, error) {
		return s.Confirm(ctx, "s", id, word, "why")
	}
}

func release(id string, word reservation.Authority) settling {
	return func(ctx context.Context, s *reservation.Store) (record.State, error) {
		return s.Release(ctx, "s", id, word, "why")
	}
}

func doubt(id string) settling {
	return func(ctx context.Context, s *reservation.Store) (record.State, error) {
		return s.Doubt(ctx, "s", id, "why")
	}
}

// Every way in which an attempt is refused, and that it costs nothing.
func TestRefusals(t *testing.T) {
	limit := stocktest.PerBuyer(2)
	tests := map[string]struct {
		prepare func(*edge.Edge) error
		lines   []sale.Line
		want    sale.Refusal
	}{
		"sold out": {
			func(e *edge.Edge) error {
				_, err := e.Store.Adjust(background, "s", "j", "a", -3, "")
				return err
			},
			[]sale.Line{{SKU: "a", Quantity: 1}}, sale.Refusal{Reason: sale.SoldOut, SKU: "a"},
		},
		"all held":       {holdAs("Bob", 2), []sale.Line{{SKU: "a", Quantity: 2}}, sale.Refusal{Reason: sale.AllHeld, SKU: "a"}},
		"all or nothing": {nil, []sale.Line{{SKU: "b", Region: "north", Quantity: 1}, {SKU: "a", Quantity: 4}}, sale.Refusal{Reason: sale.LimitReached, Limit: &limit}},
		"pending":        {holdAs("Ann", 1), []sale.Line{{SKU: "a", Quantity: 2}}, sale.Refusal{Reason: sale.Pending, Limit: &limit}},
		"limit reached":  {nil, []sale.Line{{SKU: "a", Quantity: 3}}, sale.Refusal{Reason: sale.LimitReached, Limit: &limit}},
		"paused":         {status(sale.Paused), []sale.Line{{SKU: "a", Quantity: 1}}, sale.Refusal{Reason: sale.PausedSale}},
		"closed":         {status(sale.Closed), []sale.Line{{SKU: "a", Quantity: 1}}, sale.Refusal{Reason: sale.ClosedSale}},
		"a region is its own": {
			func(e *edge.Edge) error {
				_, err := e.Store.Adjust(background, "s", "j", "b@north", -5, "")
				return err
			},
			[]sale.Line{{SKU: "b", Region: "north", Quantity: 1}}, sale.Refusal{Reason: sale.SoldOut, SKU: "b"},
		},
	}
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				if err := b.Client().FlushAll(stocktest.Soon(t)).Err(); err != nil {
					t.Fatal(err)
				}
				e := stocktest.Selling(t, stocktest.Options(b), 3, limit)
				if test.prepare != nil {
					if err := test.prepare(e); err != nil {
						t.Fatal(err)
					}
				}
				before := stocktest.Balanced(t, b.Client(), e.Store, "s")
				l, _ := e.Catalogue().Sale("s")
				a := &sale.Attempt{Buyer: "Ann", Lines: test.lines}
				_, got, err := e.Hold(stocktest.Soon(t), "r1", l, a, a.Lines, stocktest.HoldOptions)
				if err != nil || got == nil {
					t.Fatalf("not refused: %v, %v", got, err)
				}
				if got.Limit != nil && test.want.Limit != nil && *got.Limit == *test.want.Limit {
					got.Limit = test.want.Limit
				}
				if *got != test.want {
					t.Errorf("refused %+v, want %+v", *got, test.want)
				}
				if err := stocktest.Balanced(t, b.Client(), e.Store, "s").Differs(before); err != nil {
					t.Errorf("the refusal has changed something: %v", err)
				}
			})
		}
	})
}

func holdAs(buyer string, units int64) func(*edge.Edge) error {
	return func(e *edge.Edge) error {
		_, refusal, err := stocktest.Hold(background, e, "first", buyer, units)
		if refusal != nil {
			return errors.New(string(refusal.Reason))
		}
		return err
	}
}

func status(s sale.Status) func(*edge.Edge) error {
	return func(e *edge.Edge) error { return e.Store.SetStatus(background, "s", s, "") }
}

// Claims that make no sense are not even sent.
func TestSenselessClaims(t *testing.T) {
	e := stocktest.Selling(t, stocktest.Options(redistest.Embedded(t)), 3)
	for name, lines := range map[string][]sale.Line{
		"no lines":       nil,
		"no units":       {{SKU: "a"}},
		"negative units": {{SKU: "a", Quantity: 1}, {SKU: "a", Quantity: -1}},
	} {
		c := &reservation.ReserveRequest{ID: "r1", Sale: "s", Version: 2, Lines: lines, HoldFor: stocktest.HoldOptions.HoldFor, Mode: stocktest.HoldOptions.Mode}
		if _, refusal, err := e.Store.Reserve(stocktest.Soon(t), c); err == nil || refusal != nil || errors.Is(err, shard.ErrUnavailable) {
			t.Errorf("%s: %v, %v", name, refusal, err)
		}
	}
	// equal lines are counted together, even if the caller has not summed them
	c := &reservation.ReserveRequest{ID: "r1", Sale: "s", Version: 2, Lines: []sale.Line{{SKU: "a", Quantity: 2}, {SKU: "a", Quantity: 2}}, HoldFor: stocktest.HoldOptions.HoldFor, Mode: stocktest.HoldOptions.Mode}
	if _, refusal, err := e.Store.Reserve(stocktest.Soon(t), c); err != nil || refusal == nil || refusal.Reason != sale.SoldOut {
		t.Errorf("4 of 3 units: %+v, %v", refusal, err)
	}
}
