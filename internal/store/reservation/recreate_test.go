package reservation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// evidenceOf is what the token of a hold says.
func evidenceOf(h reservation.Hold) *reservation.Evidence {
	return &reservation.Evidence{Sale: h.Sale, ID: h.ID, Buyer: "Ann", Epoch: h.Epoch, Created: h.Created, Exp: h.Exp, Ref: h.Ref, Lines: h.Lines}
}

// A reservation that Redis has lost is made again from its token, once.
func TestRecreate(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		h := c.reserve("r1", ofLines(units("a", 2), north(1)), withRef("order-1"))
		ev := evidenceOf(h)
		ev.Charges = []reservation.Charge{{Field: "buyer:sale:units|-|x", Amount: 3}}
		c.lose(9)
		n := c.seq()
		for range 2 {
			c.must("confirmed")(c.Recreate(stocktest.Soon(t), ev, "paid\tin full"))
		}
		c.must("confirmed")(c.Confirm(stocktest.Soon(t), "s", "r1", reservation.SourceAnswer, "late"))
		for field, want := range map[string]string{
			"id": "[recreated r1]", "lines": "[recreated a 2 b@north 1]", "buyer": "[recreated Ann]", "cause": "[recreated paid in full]",
			"was": "[recreated ]", "record": "[recreated " + stocktest.Balanced(t, c.server.client, c.Store, "s").Records["r1"] + "]",
		} {
			if got := fmt.Sprint(c.told(field, n)); got != want {
				t.Errorf("%s: the journal has %s, want %s", field, got, want)
			}
		}
		if cell := c.cell(); cell != [5]int64{9, 7, 0, 0, 2} {
			t.Errorf("the units are %v", cell)
		}
		if got := stocktest.Balanced(t, c.server.client, c.Store, "s").Limits; fmt.Sprint(got) != "map[buyer:sale:units|-|x:3 0]" {
			t.Errorf("the limits are %v", got)
		}
		r, err := c.Reservation(stocktest.Soon(t), "r1")
		if err != nil || r.State != record.Confirmed || r.Ref != "order-1" || r.Buyer != "Ann" || r.Cause != "paid in full" ||
			!r.Created.Equal(h.Created) || !r.Exp.Equal(h.Exp) || len(r.Lines) != 2 {
			t.Errorf("the record is %+v, %v", r, err)
		}
		if b := c.bound("r2", withRef("order-1")); b == nil || b.ID != "r1" {
			t.Errorf("its ref belongs to %v", b)
		}
		if got, err := c.Return(stocktest.Soon(t), "s", "r1", reservation.Return{ID: "1", Restock: true}); err != nil || len(got) != 2 {
			t.Errorf("what was made again comes back: %v, %v", got, err)
		}
		if got := stocktest.Balanced(t, c.server.client, c.Store, "s").Limits; len(got) != 0 {
			t.Errorf("and the limits are %v", got)
		}
	})
}

// A sale that was deleted and loaded again under its id has lost nothing: a token of the old one
// takes no units of it, also where Redis's clock was set back meanwhile, nor does what an edge was
// promised.
func TestRecreateOfADeletedSale(t *testing.T) {
	eachClock(t, 9, func(t *testing.T, c *clocked) {
		ctx := stocktest.Soon(t)
		h := c.reserve("r1")
		c.must("confirmed")(c.Confirm(ctx, "s", "r1", reservation.SourceShop, ""))
		c.status(sale.Closed)
		if err := c.Delete(ctx, "s", false); err != nil {
			t.Fatal(err)
		}
		c.step(-time.Hour)
		stocktest.Load(t, c.Store, stocktest.OpenSale("s", 9))
		if now := c.reserve("r2"); now.Epoch <= h.Epoch {
			t.Errorf("the new sale has epoch %d, the deleted one had %d", now.Epoch, h.Epoch)
		}
		if state, err := c.Recreate(ctx, evidenceOf(h), "late"); !errors.Is(err, reservation.ErrNotFound) {
			t.Errorf("the token of the deleted sale: %v, %v", state, err)
		}
		_, replies, err := c.Call(ctx, "s", reservation.Operation{
			Name: "confirm", Args: []any{"r1", "told", "", h.Epoch, "Ann", 1, 2, "", "backend", 1, "a", 1, 0}})
		if err != nil || fmt.Sprint(replies) != "[[not_found]]" {
			t.Errorf("a promise of the deleted sale: %v, %v", replies, err)
		}
		if cell := c.cell(); cell != [5]int64{9, 8, 1, 0, 0} {
			t.Errorf("the units are %v", cell)
		}
	})
}

// What the evidence proves, and what it does not.
func TestEvidence(t *testing.T) {
	refund := &reservation.RefundNeededError{State: "unknown"}
	tests := map[string]struct {
		edit func(*reservation.Evidence)
		do   func(*clocked, *reservation.Evidence)
		want error
		then record.State // "": there is no reservation
	}{
		"of an older epoch":  {then: "confirmed"},
		"of this epoch":      {do: func(c *clocked, e *reservation.Evidence) { e.Epoch = c.reserve("r2").Epoch }, want: reservation.ErrNotFound},
		"the units are gone": {do: func(c *clocked, _ *reservation.Evidence) { c.reserve("r2", ofLines(units("a", 8))) }, want: refund},
		"an item is gone":    {edit: func(e *reservation.Evidence) { e.Lines = append(e.Lines, units("nothing", 1)) }, want: refund},
		"one line twice":     {edit: func(e *reservation.Evidence) { e.Lines = append(e.Lines, units("a", 8)) }, want: refund},
		"no lines":           {edit: func(e *reservation.Evidence) { e.Lines = nil }, want: reservation.ErrNotFound},
		"the sale is closed": {do: func(c *clocked, _ *reservation.Evidence) { c.status(sale.Closed) }, then: "confirmed"},
		"a tombstone": {do: func(c *clocked, _ *reservation.Evidence) {
			c.must("tombstone")(c.Release(stocktest.Soon(c.t), "s", "r1", reservation.SourceUnsent, ""))
		}, then: "confirmed"},
		"the ref is another's": {do: func(c *clocked, _ *reservation.Evidence) { c.reserve("r2", withRef("order-1")) }, then: "confirmed"},
		"it is known, released": {do: func(c *clocked, _ *reservation.Evidence) {
			c.reserve("r1")
			c.Release(stocktest.Soon(c.t), "s", "r1", reservation.SourceShop, "")
		}, want: &reservation.ConflictError{State: "released"}, then: "released"},
		"it is known, held": {do: func(c *clocked, _ *reservation.Evidence) { c.reserve("r1") }, then: "confirmed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			eachClock(t, 9, func(t *testing.T, c *clocked) {
				ev := evidenceOf(c.reserve("r1", ofLines(units("a", 2)), withRef("order-1")))
				c.lose(9)
				if test.do != nil {
					test.do(c, ev)
				}
				if test.edit != nil {
					test.edit(ev)
				}
				before := stocktest.Balanced(t, c.server.client, c.Store, "s")
				_, err := c.Recreate(stocktest.Soon(t), ev, "")
				if fmt.Sprint(err) != fmt.Sprint(test.want) {
					t.Fatalf("the error is %v, want %v", err, test.want)
				}
				after := stocktest.Balanced(t, c.server.client, c.Store, "s")
				if err := after.Differs(before); test.want != nil && err != nil {
					t.Errorf("the refusal has changed something: %v", err)
				}
				if got := stocktest.State(t, c.Store, "r1"); got != test.then {
					t.Errorf("the reservation is %q, want %q", got, test.then)
				}
				if len(after.Tombstones) != 0 {
					t.Errorf("the tombstones are %v", after.Tombstones)
				}
			})
		})
	}
}

// Evidence that makes no sense is not even sent.
func TestSenselessEvidence(t *testing.T) {
	s := stocktest.Selling(t, stocktest.Options(redistest.Embedded(t)), 3).Store
	for name, ev := range map[string]*reservation.Evidence{
		"no units": {Sale: "s", ID: "r1", Lines: []sale.Line{units("a", 0)}},
		"negative": {Sale: "s", ID: "r1", Lines: []sale.Line{units("a", 2), units("a", -1)}},
		"odd ref":  {Sale: "s", ID: "r1", Ref: "two words", Lines: []sale.Line{units("a", 1)}},
	} {
		if _, err := s.Recreate(stocktest.Soon(t), ev, ""); err == nil || errors.Is(err, shard.ErrUnavailable) || errors.Is(err, reservation.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Twice in one call it is made once.
func TestRecreateWithinOneCall(t *testing.T) {
	eachClock(t, 3, func(t *testing.T, c *clocked) {
		again := func(id string) reservation.Operation {
			return reservation.Operation{Name: "confirm", Args: []any{id, "shop", "", 1, "Ann", 1, 2, "", "backend", 1, "a", 2, 1, "x|-|y", 1}}
		}
		_, replies, err := c.Call(stocktest.Soon(t), "s", again("r1"), again("r1"), again("r2"))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(replies); got != "[[ok confirmed] [ok confirmed] [refund_needed unknown]]" {
			t.Errorf("the answers are %s", got)
		}
		if cell := c.cell(); cell != [5]int64{3, 1, 0, 0, 2} {
			t.Errorf("the units are %v", cell)
		}
	})
}

// The edge charges the buyer in the token, under their hashed identity, for the windows
// that are not over.
func TestConfirmWith(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		limits := []sale.Limit{
			stocktest.PerBuyer(3), {Per: "phone", Every: "sale", Max: 1, Count: "units"}, {Per: "buyer", Every: "order", Max: 9, Count: "units"},
			{Per: "buyer+phone", Every: "sale", Max: 9, Count: "orders"}, {Per: "buyer", Every: "day", Max: 9, Count: "units"},
			{Per: "buyer", Every: "sale", Max: 9, Count: "units", SKU: "b"},
		}
		e := stocktest.Selling(t, stocktest.Options(b), 9, limits...)
		for range 2 {
			ev := &reservation.Evidence{
				Sale: "s", ID: "r1", Buyer: "Ann", Epoch: 1, Created: time.Now().AddDate(0, 0, -1), Exp: time.Now(), Lines: []sale.Line{units("a", 2)},
			}
			if got, err := e.ConfirmWith(stocktest.Soon(t), ev, "shop"); err != nil || got != record.Confirmed {
				t.Fatalf("%s, %v", got, err)
			}
		}
		var got []string
		for field, n := range stocktest.Balanced(t, b.Client(), e.Store, "s").Limits {
			limit, _, _ := strings.Cut(field, "|")
			got = append(got, limit+" "+n)
		}
		if len(got) != 2 || !strings.Contains(fmt.Sprint(got), "buyer:sale:units 2 0") || !strings.Contains(fmt.Sprint(got), "buyer+phone:sale:orders 1 0") {
			t.Errorf("the buyer is charged %v", got)
		}
		l, _ := e.Catalogue().Sale("s")
		a := &sale.Attempt{Buyer: "Ann", Identities: map[string]string{"phone": "555"}, Lines: []sale.Line{units("a", 2)}}
		if _, refusal, err := e.Hold(stocktest.Soon(t), "r2", l, a, a.Lines, stocktest.HoldOptions); err != nil || refusal == nil || refusal.Reason != sale.LimitReached || *refusal.Limit != limits[0] {
			t.Errorf("the buyer may buy 2 more: %+v, %v", refusal, err)
		}
		if _, err := e.ConfirmWith(stocktest.Soon(t), &reservation.Evidence{Sale: "nowhere", ID: "r1", Epoch: 1}, ""); !errors.Is(err, shard.ErrNoSale) {
			t.Errorf("of no sale: %v", err)
		}
	})
	e := stocktest.NewEdge(t, stocktest.At("127.0.0.1:1", time.Second), edge.Options{})
	if _, err := e.ConfirmWith(stocktest.Soon(t), &reservation.Evidence{Sale: "s"}, ""); !errors.Is(err, shard.ErrStarting) {
		t.Errorf("before it has heard of redis: %v", err)
	}
}

// Without data of that sale there is nothing to make it again in.
func TestEvidenceOfNoSale(t *testing.T) {
	b := redistest.Embedded(t)
	s := stocktest.OpenStore(t, stocktest.Options(b))
	_, replies, err := s.Call(stocktest.Soon(t), "s", reservation.Operation{
		Name: "confirm", Args: []any{"r1", "shop", "", 1, "Ann", 1, 2, "", "backend", 1, "a", 2, 0}})
	if err != nil || fmt.Sprint(replies) != "[[not_found]]" {
		t.Errorf("the answers are %v, %v", replies, err)
	}
}
