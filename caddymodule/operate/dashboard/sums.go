package dashboard

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/sale"
)

// shownEdges bounds the edges that a frame lists: those that are heard come first.
const shownEdges = 50

// sums are what all edges have counted of a sale, and how fast the others count.
type sums struct {
	at     time.Time // when they were read; zero: never
	counts *edgeruntime.SaleCounts
	others map[string]*otherProcess
}

// otherProcess is what another process had counted when it was last heard, and before.
type otherProcess struct{ now, past edgeruntime.ProcessCounts }

// take takes in what was read. own is the id of this edge.
func (s *sums) take(at time.Time, read *edgeruntime.SaleCounts, own string) {
	seen := make(map[string]*otherProcess)
	for i := range read.Edges {
		for id, p := range read.Edges[i].Each {
			if p.Edge == own || !p.Live {
				continue
			}
			known := s.others[id]
			if known == nil {
				known = &otherProcess{now: p}
			}
			if p.Heard.After(known.now.Heard) {
				known = &otherProcess{now: p, past: known.now}
			}
			seen[id] = known
		}
	}
	s.at, s.counts, s.others = at, read, seen
}

// eachOther calls yield with the attempts a second of the other edges, as they last told.
func (s *sums) eachOther(yield func(outcome, reason string, rate float64)) {
	for _, o := range s.others {
		seconds := o.now.Heard.Sub(o.past.Heard).Seconds()
		if o.past.Heard.IsZero() || seconds <= 0 {
			continue
		}
		o.now.Sum.EachAttempt(func(outcome, reason string, n int64) {
			if n -= o.past.Sum[edgeruntime.CountedAttempts(outcome, reason)]; n > 0 {
				yield(outcome, reason, float64(n)/seconds)
			}
		})
	}
}

// rates adds the attempts a second of the other edges by class.
func (s *sums) rates(own [classes]float64) [classes]float64 {
	s.eachOther(func(outcome, reason string, rate float64) { own[classOf(outcome, sale.Reason(reason))] += rate })
	for i := range own {
		own[i] = math.Round(100*own[i]) / 100
	}
	return own
}

// total is the sum over all edges; none where they were never read.
func (s *sums) total() edgeruntime.Counters {
	if s.counts == nil {
		return nil
	}
	return s.counts.Sum
}

// byName are attempts by reason of a refusal, and others by outcome.
func byName(n edgeruntime.Counters) map[string]float64 {
	all := make(map[string]float64)
	n.EachAttempt(func(outcome, reason string, count int64) { all[cmp.Or(reason, outcome)] += float64(count) })
	return all
}

// shadowed are the attempts in shadow with one outcome and reason.
type shadowed struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	Count   int64  `json:"count"`
}

// shadowOf returns the attempts in shadow, the most frequent first.
func shadowOf(n edgeruntime.Counters) (all []shadowed) {
	n.EachShadow(func(outcome, reason string, count int64) { all = append(all, shadowed{outcome, reason, count}) })
	slices.SortStableFunc(all, func(a, b shadowed) int { return cmp.Compare(b.Count, a.Count) })
	return all
}

// edgeRow is an edge as the page lists it.
type edgeRow struct {
	Name      string  `json:"name"`
	Live      int64   `json:"live"` // processes that are heard
	Sells     bool    `json:"sells"`
	Silent    bool    `json:"silent,omitempty"` // it was not stopped, and is not heard
	Here      bool    `json:"here,omitempty"`   // it serves this page
	Heard     int64   `json:"heard"`            // ms
	PerSecond float64 `json:"per_second"`
	Attempts  int64   `json:"attempts"`
}

// rows lists the edges.
func (s *sums) rows(own string) []edgeRow {
	rows := []edgeRow{}
	if s.counts == nil {
		return rows
	}
	for i := range s.counts.Edges[:min(len(s.counts.Edges), shownEdges)] {
		e := &s.counts.Edges[i]
		rows = append(rows, edgeRow{e.Name, e.Live, e.Sells, e.Silent, slices.Contains(e.IDs, own), e.Heard.UnixMilli(),
			math.Round(10*float64(e.PerMinute)/60) / 10, e.Sum.Total()})
	}
	return rows
}

// sumUp reads what all edges have counted, as often as they write it.
func (s *saleReader) sumUp(ctx context.Context, d *edgeruntime.Runtime) error {
	s.mu.Lock()
	due := time.Since(s.sums.at) >= edgeruntime.CountsEvery()
	s.mu.Unlock()
	if !due {
		return nil
	}
	read, err := d.LastCounts(ctx, s.id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums.take(time.Now(), read, d.Leases().ID())
	return nil
}
