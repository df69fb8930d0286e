package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/store/journal"
)

// mostActs bounds the acts of a kind that the report has: those on the sale, on its stock, and on its holds. The journal has all.
const mostActs = 500

// Act is what an operator, or an edge by itself, has done to the sale.
type Act struct {
	At time.Time
	// The act, and its caller as the journal has it.
	What, By string
}

// acts are the acts of a kind.
type acts struct {
	all  []Act
	more int64 // that are not in all
}

func (a *acts) add(act Act) {
	if len(a.all) == mostActs {
		a.more++
		return
	}
	a.all = append(a.all, act)
}

// settlings count the holds that one operator has settled in one way.
type settlings struct {
	first, last time.Time
	holds       int64
}

// settlement is a way to settle, and its cause.
type settlement struct{ kind, cause string }

// saleActs are the words for what changes a sale.
var saleActs = map[string]string{
	"open": "opened", "paused": "paused", "closed": "closed", "applied": "sale file applied: version ID", "rebuilt": "rebuilt from the ledger", "repaired": "ID repaired by reconcile",
	"offers_paused": "offers to people who wait paused", "offers_resumed": "offers to people who wait resumed",
}

// act notes what a movement says of an operator.
func (r *Report) act(m *journal.Movement) {
	effect, _ := journal.EffectOf(m.Kind)
	what, known := saleActs[m.Kind]
	switch {
	case known:
		r.onSale.add(Act{m.Time, strings.Replace(what, "ID", m.ID, 1), m.Cause})
	case effect.Stock:
		r.onStock.add(Act{m.Time, stockAct(m), m.Cause})
	case effect.Reservation && strings.HasPrefix(m.Cause, "operator"):
		r.settled(m)
	}
}

// stockAct says how a movement changes the stock.
func stockAct(m *journal.Movement) string {
	units := int64(0)
	for _, line := range m.Lines {
		units += line.Units
	}
	of := fmt.Sprintf("%d items", len(m.Lines))
	if len(m.Lines) == 1 {
		of = m.Lines[0].Cell
	}
	if m.Kind == "loaded" {
		return fmt.Sprintf("stock of %s: %+d units, by the sale file", of, units)
	}
	return fmt.Sprintf("stock of %s: %+d units (%s)", of, units, m.ID)
}

// settled counts a hold that an operator has settled.
func (r *Report) settled(m *journal.Movement) {
	key := settlement{m.Kind, m.Cause}
	s := r.settledBy[key]
	if s == nil {
		if len(r.settledBy) == mostActs {
			r.moreSettled++
			return
		}
		s = &settlings{first: m.Time}
		r.settledBy[key] = s
	}
	s.last = m.Time
	s.holds++
}

// Acts returns the acts in the order of their times, and how many more there were.
func (r *Report) Acts() (all []Act, more int64) {
	all = slices.Concat(r.onSale.all, r.onStock.all)
	for key, s := range r.settledBy {
		what := fmt.Sprintf("reservations %s: %s", key.kind, count(s.holds))
		if s.last.After(s.first) {
			what += fmt.Sprintf(", the last one %s later", span(s.last.Sub(s.first)))
		}
		all = append(all, Act{s.first, what, key.cause})
	}
	slices.SortStableFunc(all, func(a, b Act) int {
		if by := a.At.Compare(b.At); by != 0 {
			return by
		}
		return strings.Compare(a.By+a.What, b.By+b.What)
	})
	return all, r.onSale.more + r.onStock.more + r.moreSettled
}
