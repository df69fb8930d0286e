package dashboard

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// flowHalf is the half-life of what counts in a pace: it forgets so fast.
	flowHalf = 20 * time.Second
	// slowest is the pace, in units a second, below which there is none.
	slowest = 1.0 / 600
	// shownRegions bounds the regions of a frame.
	shownRegions = 30
)

// flow measures at what pace units are taken.
type flow struct {
	units float64 // that were taken lately: they halve every flowHalf
	at    time.Time
	since time.Time // when the first was taken
}

// add adds units that were taken, or came back where it is negative.
func (f *flow) add(now time.Time, units int64) {
	if f.since.IsZero() {
		f.since = now
	}
	f.units, f.at = max(0, f.left(now)+float64(units)), now
}

func (f *flow) left(now time.Time) float64 {
	return f.units * math.Exp2(-now.Sub(f.at).Seconds()/flowHalf.Seconds())
}

// pace is in units a second; 0: there is none. A flow that has just begun is measured over at least a second.
func (f *flow) pace(now time.Time) float64 {
	if f.since.IsZero() {
		return 0
	}
	over := max(time.Second, now.Sub(f.since)).Seconds() / flowHalf.Seconds()
	p := f.left(now) * math.Ln2 / flowHalf.Seconds() / (1 - math.Exp2(-over))
	if p < slowest {
		return 0
	}
	return math.Round(1000*p) / 1000
}

// region sums up the cells of a region.
type region struct {
	stock [5]int64 // as in itemRow
	flow  flow
}

// regionRow is a region as the page lists it.
type regionRow struct {
	Name  string   `json:"name"`
	Stock [5]int64 `json:"stock"`
	Pace  float64  `json:"pace"`
}

// inRegions lists the regions of a sale that has several, the largest first.
func (s *saleReader) inRegions(now time.Time) []regionRow {
	if len(s.regions) < 2 {
		return nil
	}
	rows := make([]regionRow, 0, len(s.regions))
	for name, r := range s.regions {
		rows = append(rows, regionRow{name, r.stock, r.flow.pace(now)})
	}
	slices.SortFunc(rows, func(a, b regionRow) int {
		return cmp.Or(cmp.Compare(b.Stock[0], a.Stock[0]), cmp.Compare(a.Name, b.Name))
	})
	return rows[:min(len(rows), shownRegions)]
}

// of returns the sums of a region.
func (s *saleReader) of(name string) *region {
	if s.regions == nil {
		s.regions = make(map[string]*region)
	}
	if s.regions[name] == nil {
		s.regions[name] = new(region)
	}
	return s.regions[name]
}
