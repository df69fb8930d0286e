package dashboard

import (
	"cmp"
	"math"
)

// attemptFrame has attempts of all edges, since the sale opened.
type attemptFrame struct {
	PerSecond [classes]float64   `json:"per_second"` // of the others as they last told
	Total     map[string]float64 `json:"total"`      // by reason or outcome
	Rate      map[string]float64 `json:"rate"`       // a second, of those that are not 0
	Won       waits              `json:"won"`        // how long attempts took
	Lost      waits              `json:"lost"`
	Reserves  waits              `json:"reserves"`
	Shadow    []shadowed         `json:"shadow,omitempty"`
	Edges     []edgeRow          `json:"edges"`
	ReadAt    int64              `json:"read_at"` // ms; 0: never
	Memory    *float64           `json:"memory"`  // of this edge, in the last second
	P50       *float64           `json:"p50"`     // ms; of this edge
	P99       *float64           `json:"p99"`
}

// waits say how long attempts took from their arrival to what their buyers were told.
type waits struct {
	Attempts uint64   `json:"attempts"`
	P50      *float64 `json:"p50"` // ms
	P99      *float64 `json:"p99"`
}

func waitsOf(h histogram) waits {
	return waits{h.Total(), known(h.Quantile(histogram{}, 0.5)), known(h.Quantile(histogram{}, 0.99))}
}

// attempts returns what all edges have counted.
func (s *saleReader) attempts(now, past *counts, own string) attemptFrame {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.sums.total()
	f := attemptFrame{PerSecond: s.sums.rates(now.since(past, s.id)), Total: byName(sum), Rate: make(map[string]float64), Edges: s.sums.rows(own)}
	f.Won, f.Lost, f.Reserves, f.Shadow = waitsOf(sum.Won()), waitsOf(sum.Lost()), waitsOf(sum.Reserves()), shadowOf(sum)
	if !s.sums.at.IsZero() {
		f.ReadAt = s.sums.at.UnixMilli()
	}
	if now == nil {
		return f
	}
	if past != nil && now.at.After(past.at) {
		was := past.byNameOf(s.id)
		for name, v := range now.byNameOf(s.id) {
			f.Rate[name] = (v - was[name]) / now.at.Sub(past.at).Seconds()
		}
	}
	s.sums.eachOther(func(outcome, reason string, rate float64) { f.Rate[cmp.Or(reason, outcome)] += rate })
	for name, rate := range f.Rate {
		if f.Rate[name] = math.Round(10*rate) / 10; f.Rate[name] == 0 {
			delete(f.Rate, name)
		}
	}
	f.Memory, f.P50, f.P99 = known(now.memoryShare(past)), known(now.reserves(past, 0.5)), known(now.reserves(past, 0.99))
	return f
}
