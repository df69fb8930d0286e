package report

import (
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
)

// maxPoints bounds the points of a curve that are kept; then every other one goes.
const maxPoints = 20_000

// curve is the stock over time. It keeps the last state of each step, and doubles the step
// when there are too many.
type curve struct {
	step      time.Duration
	points    []moment
	lastTaken time.Time
}

// moment is the stock at a time: sold, in doubt, held, available.
type moment struct {
	at    time.Time
	units [4]int64
}

// add notes the stock after a movement. taken: buyers took units by it.
func (c *curve) add(at time.Time, sums *ledger.Cell, taken bool) {
	if taken {
		c.lastTaken = at
	}
	if c.step == 0 {
		c.step = 50 * time.Millisecond
	}
	now := moment{at, [4]int64{sums.Confirmed, sums.InDoubt, sums.Held, sums.Available}}
	if n := len(c.points); n > 1 && at.Sub(c.points[n-2].at) < c.step {
		c.points[n-1] = now
		return
	}
	if c.points = append(c.points, now); len(c.points) >= maxPoints {
		c.step *= 2
		kept := c.points[:0]
		for i := 0; i < len(c.points); i += 2 {
			kept = append(kept, c.points[i])
		}
		c.points = kept
	}
}

// between returns at most n moments of a time, evenly apart; the stock stays as it is between
// two movements. base is added to each: what happened before the first movement.
func (c *curve) between(from, to time.Time, n int, base [4]int64) []moment {
	if len(c.points) == 0 || !to.After(from) {
		return nil
	}
	out := make([]moment, 0, n)
	j := 0
	for i := range n {
		at := from.Add(to.Sub(from) * time.Duration(i) / time.Duration(n-1))
		for j+1 < len(c.points) && !c.points[j+1].at.After(at) {
			j++
		}
		m := moment{at: at, units: base}
		if !c.points[j].at.After(at) {
			for k, v := range c.points[j].units {
				m.units[k] += v
			}
		}
		out = append(out, m)
	}
	return out
}
