package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// Report is what is known of a sale. Add takes its movements in their order; the other fields
// are set by the caller.
type Report struct {
	Sale, Status     string
	Made             time.Time
	StartsAt, EndsAt time.Time
	// Zone is the sale's time zone, in which times are told.
	Zone     *time.Location
	Stock    record.Cell // what Redis has now, summed up
	Balanced bool
	// Bundles are the sale's bundles, with what is left of their components.
	Bundles []BundleRow
	// Unbacked counts orders that the shop took without stock.
	Unbacked int64
	// Missing says how many movements before the first one are in neither journal nor ledger.
	Missing int64
	// Ledger says in a sentence whether the ledger agrees with Redis.
	Ledger string
	// LedgerAgrees is nil without a ledger.
	LedgerAgrees *bool
	// Attempts are those that all edges have counted since the sale opened, by reason or outcome.
	Attempts map[string]float64
	// Shadow are the attempts in shadow that they have counted; ShadowSold and ShadowPast are units that the shop sold then, as the gate would have sold them
	// and past it.
	Shadow                 []Shadowed
	ShadowSold, ShadowPast int64
	// Memory is the share of "nothing left" that this edge answered from memory; P50 and P99 are of
	// the reserves of all, in ms. NaN: there were none.
	Memory, P50, P99 float64
	// Won and Lost say how long the attempts took that all edges have answered: whose buyer got
	// the goods, and whose did not.
	Won, Lost Waits

	curve     curve
	sums      ledger.Cell
	movements int64
	first     time.Time // the first hold
	open      map[string]*openHold
	doubts    map[string]*Doubt
	took      []time.Duration // from hold to order
	won       []time.Duration // from the first hold to each hold that became an order
	buyers    map[string]bool
	ended     map[string]int64 // reservations by how they ended

	items           []SoldItem
	paces           map[string]*pace // by the names of items
	onSale, onStock acts
	waits           waiting
	settledBy       map[settlement]*settlings
	moreSettled     int64 // movements that settledBy lacks
}

// BundleRow is an item that takes units of others.
type BundleRow struct {
	// Name is its SKU, with its region. Of says in words what it takes.
	Name, Of string
	// Stock and Available are how many of it the units of its components make.
	Stock, Available int64
}

// Shadowed are the attempts in shadow with one outcome, and reason of what would have been a
// refusal.
type Shadowed struct {
	Outcome, Reason string
	Attempts        int64
}

// Waits say how many attempts there were, and how long they took in ms. NaN: there were none.
type Waits struct {
	Attempts int64
	P50, P99 float64
}

// openHold is a reservation that is not settled yet.
type openHold struct {
	at    time.Time
	buyer string
	doubt *Doubt
}

// Doubt counts the holds that were in doubt for a cause, and how they ended.
type Doubt struct {
	Cause                           string
	Holds, Confirmed, Released, Yet int64
}

// New makes a report without movements.
func New(sale string) *Report {
	return &Report{Sale: sale, open: make(map[string]*openHold), doubts: make(map[string]*Doubt), buyers: make(map[string]bool), paces: make(map[string]*pace),
		ended: make(map[string]int64), Attempts: make(map[string]float64), settledBy: make(map[settlement]*settlings)}
}

// Add takes the next movements.
func (r *Report) Add(movements []journal.Movement) error {
	for i := range movements {
		m := &movements[i]
		change, err := ledger.Fold(movements[i : i+1])
		if err != nil {
			return fmt.Errorf("the report: %w", err)
		}
		taken := r.sums.Held + r.sums.InDoubt + r.sums.Confirmed
		for _, c := range change.Cells {
			r.sums.Stock += c.Stock
			r.sums.Available += c.Available
			r.sums.Held += c.Held
			r.sums.InDoubt += c.InDoubt
			r.sums.Confirmed += c.Confirmed
			r.paceOf(c.Name).add(m, &c)
		}
		r.movements++
		if !r.waits.follow(m) {
			r.follow(m)
		}
		r.act(m)
		if len(change.Cells) > 0 {
			r.curve.add(m.Time, &r.sums, r.sums.Held+r.sums.InDoubt+r.sums.Confirmed > taken)
		}
	}
	return nil
}

// follow notes what a movement says of its reservation.
func (r *Report) follow(m *journal.Movement) {
	switch m.Kind {
	case "held":
		if r.first.IsZero() {
			r.first = m.Time
		}
		r.open[m.ID] = &openHold{at: m.Time, buyer: m.Buyer}
	case "in_doubt":
		h := r.open[m.ID]
		if h == nil || h.doubt != nil {
			return
		}
		if h.doubt = r.doubts[m.Cause]; h.doubt == nil {
			h.doubt = &Doubt{Cause: m.Cause}
			r.doubts[m.Cause] = h.doubt
		}
		h.doubt.Holds++
		h.doubt.Yet++
	case "confirmed", "released", "expired", "unbacked":
		r.ended[m.Kind]++
		if record.State(m.Was) != record.Held && record.State(m.Was) != record.InDoubt && m.Was != "" {
			r.ended[string(m.Was)]-- // it had ended otherwise before
		}
		r.settle(m, r.open[m.ID])
		delete(r.open, m.ID)
	}
}

func (r *Report) settle(m *journal.Movement, h *openHold) {
	if h == nil {
		return
	}
	if h.doubt != nil {
		h.doubt.Yet--
		if m.Kind == "confirmed" {
			h.doubt.Confirmed++
		} else {
			h.doubt.Released++
		}
	}
	if m.Kind == "confirmed" {
		r.took, r.won = append(r.took, m.Time.Sub(h.at)), append(r.won, h.at.Sub(r.first))
		r.buyers[h.buyer] = true
	}
}

// Doubts returns the causes of doubt, the most frequent first.
func (r *Report) Doubts() []Doubt {
	var all []Doubt
	for _, d := range r.doubts {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b Doubt) int {
		if a.Holds != b.Holds {
			return int(b.Holds - a.Holds)
		}
		return strings.Compare(a.Cause, b.Cause)
	})
	return all
}

// Agrees reports whether the movements lead to the stock that Redis has. Movements that are
// missing cannot disagree.
func (r *Report) Agrees() bool {
	s := &r.Stock
	return r.Missing > 0 || r.sums.Stock == s.Stock && r.sums.Available == s.Available && r.sums.Held == s.Held && r.sums.InDoubt == s.InDoubt && r.sums.Confirmed == s.Confirmed
}

// SoldOut returns how long after the first hold the last unit was taken; false: it was not.
func (r *Report) SoldOut() (time.Duration, bool) {
	if r.first.IsZero() || r.Stock.Stock == 0 || r.Stock.Available > 0 || r.Missing > 0 {
		return 0, false
	}
	return r.curve.lastTaken.Sub(r.first), true
}

// quantile returns the duration that a share of all does not exceed.
func quantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
