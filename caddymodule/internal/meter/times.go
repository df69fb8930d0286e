package meter

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/stockgate/stockgate/internal/store/counts"
)

// reserveBounds and answerBounds are the bounds of the buckets of times, in seconds.
var (
	reserveBounds = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1}
	answerBounds  = append(reserveBounds[:len(reserveBounds):len(reserveBounds)], 2, 5, 10)
)

// buckets count times up to each of answerBounds, and over the last one.
type buckets [15]atomic.Int64

func (b *buckets) observe(took time.Duration) {
	seconds := took.Seconds()
	for i, bound := range answerBounds {
		if seconds <= bound {
			b[i].Add(1)
			return
		}
	}
	b[len(b)-1].Add(1)
}

// saleTimes are the times of one sale. Prometheus has them of all sales together.
type saleTimes struct{ reserve, won, lost buckets }

// timesBySale finds the times of a sale without an allocation. The map is replaced, never changed.
type timesBySale struct {
	resolved atomic.Pointer[map[string]*saleTimes]
	adding   sync.Mutex
}

// of finds the times of a sale that is in the catalogue; empty: attempts that led to no sale.
func (t *timesBySale) of(sale string) *saleTimes {
	if all := t.resolved.Load(); all != nil {
		if s, ok := (*all)[sale]; ok {
			return s
		}
	}
	t.adding.Lock()
	defer t.adding.Unlock()
	next := make(map[string]*saleTimes)
	if all := t.resolved.Load(); all != nil {
		maps.Copy(next, *all)
	}
	if next[sale] == nil {
		next[sale] = new(saleTimes)
	}
	t.resolved.Store(&next)
	return next[sale]
}

var times timesBySale

// Counted returns what this process has counted by sale; empty: of attempts that led to no sale.
func Counted() map[string]counts.Counters {
	all := make(map[string]counts.Counters)
	add := func(sale, name string, n int64) {
		if all[sale] == nil {
			all[sale] = make(counts.Counters)
		}
		all[sale][name] += n
	}
	m := All()
	for labels, counter := range *m.attemptCounters.resolved.Load() {
		var value dto.Metric
		_ = counter.Write(&value) // a counter always tells
		add(labels.sale, counts.Attempts(labels.outcome, string(labels.reason)), int64(value.GetCounter().GetValue()))
	}
	for labels, counter := range *m.shadowCounters.resolved.Load() {
		var value dto.Metric
		_ = counter.Write(&value)
		add(labels.sale, counts.Shadows(labels.outcome, string(labels.reason)), int64(value.GetCounter().GetValue()))
	}
	if sales := times.resolved.Load(); sales != nil {
		for sale, s := range *sales {
			for kind, b := range map[string]*buckets{counts.Reserve: &s.reserve, counts.Won: &s.won, counts.Lost: &s.lost} {
				for i := range b {
					bound := math.Inf(1)
					if i < len(answerBounds) {
						bound = answerBounds[i]
					}
					if n := b[i].Load(); n > 0 {
						add(sale, counts.Times(kind, bound), n)
					}
				}
			}
		}
	}
	return all
}
