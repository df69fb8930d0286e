package reservation_test

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/filters/challenge"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// work is the default `challenge pow` in front of the sale, and one machine that solves its
// tasks for all fake buyers. They know the task of the moment without asking for it, and
// need no luck: each solution takes as many hashes as the average.
type work struct {
	gate  *challenge.Challenger
	left  int64 // hashes that the machine can make before the next moment
	asked int   // attempts that needed a solution
}

func newWork() *work {
	return &work{gate: challenge.New(challenge.Policy{Above: 200, Window: time.Second, Least: 12, Most: 20})}
}

// passes counts an attempt, and reports whether the machine can do the work for it in time.
func (w *work) passes(now time.Time, address string) bool {
	bits := w.gate.Judge(now, nil, challenge.TaskScope{Gate: "g", Sale: "s", Address: address}, "")
	if bits == 0 {
		return true
	}
	w.asked++
	cost := int64(1) << bits
	if cost > w.left {
		return false
	}
	w.left -= cost
	return true
}

// What work does bound: how many units one machine can hold at a time. A script in a browser
// makes 3,000,000 hashes a second (docs/filters.md#challenge), and there are 3,000 units.
func TestWorkBoundsTheHoldsOfOneMachine(t *testing.T) {
	t.Parallel()
	const stock, hashes, never = 3000, 3_000_000, -time.Second
	s := servers(t)[0]
	for _, row := range []struct {
		name    string
		holdFor time.Duration
		work    *work
		most    int64         // units that are held at a time, in 20 s
		all     time.Duration // until all of them are; never: that does not happen
	}{
		{"no challenge", 4 * time.Second, nil, stock, 0},
		{"holds of 4 s", 4 * time.Second, newWork(), 1964, never},
		{"holds of 15 min", 15 * time.Minute, newWork(), stock, 6 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHoard(t, s, attack{10, 10, row.holdFor, &sale.Unpaid{Off: true}})
			h.honest, h.work = nil, row.work
			if _, err := h.edge.Store.Adjust(stocktest.Soon(t), "s", "more", "a", stock-hoardedUnits, "test"); err != nil {
				t.Fatal(err)
			}
			most, all := int64(0), never
			for passed := time.Duration(0); passed < 20*time.Second && all == never; passed += time.Second {
				if h.work != nil {
					h.work.left = hashes
				}
				h.moment()
				most = max(most, stocktest.CellA(t, h.edge.Store).Held)
				if most == stock {
					all = passed
				}
				h.step(time.Second)
			}
			if most != row.most || all != row.all {
				t.Errorf("the machine holds %d of %d units, all of them after %v; want %d, %v", most, stock, all, row.most, row.all)
			}
		})
	}
}
