package dashboard

import (
	"math"
	"time"
)

// columns are the numbers of a point: four of the stock, the attempts per second by class,
// the 50th and the 99th percentile of the reserves in ms.
const columns = 4 + classes + 2

// point is what a chart shows of one moment. NaN is unknown.
type point struct {
	at     int64 // ms
	values [columns]float64
}

// taken returns how many units buyers have: it changes with no stock that an operator adds or takes out.
func (p *point) taken() float64 { return p.values[0] + p.values[1] + p.values[2] }

// tiers say how long points are kept, and at which distance.
var tiers = [...]struct {
	every time.Duration
	most  int
}{
	{time.Second, 600},
	{10 * time.Second, 720},
	{time.Minute, 1440},
}

// points has the points of a sale: ten minutes by the second, two hours by ten seconds, a day
// by the minute.
type points struct {
	tiers [len(tiers)][]point
}

// due reports whether a point is missing at a moment.
func (h *points) due(at int64) bool {
	newest := h.tiers[0]
	return len(newest) == 0 || at-newest[len(newest)-1].at >= tiers[0].every.Milliseconds()*9/10
}

// add adds a point, and thins out older ones.
func (h *points) add(p point) {
	for i := range h.tiers {
		points := h.tiers[i]
		if n := len(points); n > 0 && i > 0 && p.at-points[n-1].at < tiers[i].every.Milliseconds() {
			return
		}
		if i > 0 {
			p = h.mean(i, p)
		}
		if len(points) >= 2*tiers[i].most { // seldom, so that adding is cheap
			points = append(points[:0], points[len(points)-tiers[i].most:]...)
		}
		h.tiers[i] = append(points, p)
	}
}

// mean returns p with the mean rates of the points of the first tier since the last point of
// tier i. Stock is what it is at the moment.
func (h *points) mean(i int, p point) point {
	since := int64(math.MinInt64)
	if n := len(h.tiers[i]); n > 0 {
		since = h.tiers[i][n-1].at
	}
	var sums [columns]float64
	var n [columns]float64
	first := h.tiers[0]
	for j := len(first) - 1; j >= 0 && first[j].at > since && p.at-first[j].at < tiers[i].every.Milliseconds(); j-- {
		for k := 4; k < columns; k++ {
			if v := first[j].values[k]; !math.IsNaN(v) {
				sums[k] += v
				n[k]++
			}
		}
	}
	for k := 4; k < columns; k++ {
		p.values[k] = sums[k] / n[k] // NaN: unknown all the time
	}
	return p
}

// all returns the points, the oldest first: the finer ones where there are some.
func (h *points) all() []point {
	var out []point
	until := int64(math.MaxInt64)
	for i := range h.tiers {
		points := h.tiers[i]
		points = points[max(0, len(points)-tiers[i].most):]
		var older []point
		for _, p := range points {
			if p.at < until {
				older = append(older, p)
			}
		}
		out = append(older, out...)
		if len(points) > 0 {
			until = min(until, points[0].at)
		}
	}
	return out
}

// before returns the newest point that is at least so old, of the last ten minutes; false:
// there is none.
func (h *points) before(at int64) (point, bool) {
	first := h.tiers[0]
	for j := len(first) - 1; j >= 0; j-- {
		if first[j].at <= at {
			return first[j], true
		}
	}
	return point{}, false
}
