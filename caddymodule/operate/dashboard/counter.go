package dashboard

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/internal/sale"
)

// The classes of attempts, as the page colours them.
const (
	accepted = iota
	allHeld
	soldOut
	limited
	rated
	denied
	others
	classes
)

// classOf returns the class of an outcome.
func classOf(outcome string, reason sale.Reason) int {
	switch outcome {
	case "confirmed", "held", "in_doubt", "unbacked":
		return accepted
	case "refused":
	default:
		return others
	}
	switch reason {
	case sale.AllHeld:
		return allHeld
	case sale.SoldOut:
		return soldOut
	case sale.LimitReached, sale.TooManyUnpaid:
		return limited
	case sale.RateLimited, sale.Challenge, sale.Busy, sale.TooEarly:
		return rated
	case sale.Denied, sale.NotEligible:
		return denied
	}
	return others
}

// attempts are the attempts of one sale.
type attempts struct {
	byClass [classes]float64
	// byName are refusals by reason, and other attempts by outcome.
	byName map[string]float64
}

// counts are the counters of this process at one moment.
type counts struct {
	at       time.Time
	attempts map[string]*attempts // by sale; empty: no sale was found
	// fromMemory and fromRedis say who said that nothing is left.
	fromMemory, fromRedis float64
	reserve               histogram
	// gauges are the gauges of the journal by name and sale.
	gauges map[string]map[string]float64
}

// counter reads the counters of this process. They are those of the metrics endpoint, without
// the collectors that ask Redis.
type counter struct {
	registry *prometheus.Registry

	mu   sync.Mutex
	past [3]*counts // the newest first; the last is two ticks older
}

func newCounter() *counter {
	c := &counter{registry: prometheus.NewRegistry()}
	_ = meter.Register(c.registry) // it is empty: nothing is in the way
	return c
}

// read takes the present numbers.
func (c *counter) read(at time.Time) {
	families, _ := c.registry.Gather()
	next := &counts{at: at, attempts: make(map[string]*attempts), gauges: make(map[string]map[string]float64)}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			next.add(f.GetName(), m)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past = [3]*counts{next, c.past[0], c.past[1]}
}

// last returns the present numbers, and those of about a second before; either may be nil.
func (c *counter) last() (now, past *counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.past[0], c.past[2]
}

func (n *counts) add(name string, m *dto.Metric) {
	label := func(name string) string {
		for _, l := range m.GetLabel() {
			if l.GetName() == name {
				return l.GetValue()
			}
		}
		return ""
	}
	switch name {
	case "stockgate_attempts_total":
		n.addAttempts(label("sale"), label("outcome"), sale.Reason(label("reason")), m.GetCounter().GetValue())
	case "stockgate_nothing_left_total":
		if label("by") == "memory" {
			n.fromMemory = m.GetCounter().GetValue()
		} else {
			n.fromRedis = m.GetCounter().GetValue()
		}
	case "stockgate_reserve_seconds":
		n.reserve = histogramOf(m.GetHistogram())
	default:
		if m.GetGauge() == nil {
			return
		}
		if n.gauges[name] == nil {
			n.gauges[name] = make(map[string]float64)
		}
		n.gauges[name][label("sale")] += m.GetGauge().GetValue()
	}
}

func (n *counts) addAttempts(id, outcome string, reason sale.Reason, value float64) {
	a := n.attempts[id]
	if a == nil {
		a = &attempts{byName: make(map[string]float64)}
		n.attempts[id] = a
	}
	a.byClass[classOf(outcome, reason)] += value
	name := outcome
	if reason != "" {
		name = string(reason)
	}
	a.byName[name] += value
}

// of returns the attempts of a sale, with those of no sale.
func (n *counts) of(id string) [classes]float64 {
	var sum [classes]float64
	for _, name := range []string{id, ""} {
		if a := n.attempts[name]; a != nil {
			for i, v := range a.byClass {
				sum[i] += v
			}
		}
	}
	return sum
}

// byNameOf returns the attempts of a sale, with those of no sale, by reason or outcome.
func (n *counts) byNameOf(id string) map[string]float64 {
	sum := make(map[string]float64)
	if n == nil {
		return sum
	}
	for _, name := range []string{id, ""} {
		if a := n.attempts[name]; a != nil {
			for reason, v := range a.byName {
				sum[reason] += v
			}
		}
	}
	return sum
}

// since returns the attempts per second of a sale between two moments.
func (n *counts) since(past *counts, id string) (rate [classes]float64) {
	if n == nil || past == nil || !n.at.After(past.at) {
		return rate
	}
	seconds := n.at.Sub(past.at).Seconds()
	was := past.of(id)
	for i, v := range n.of(id) {
		rate[i] = (v - was[i]) / seconds
	}
	return rate
}

// memoryShare returns which share of the refusals since past that nothing is left came from
// memory; NaN: there were none.
func (n *counts) memoryShare(past *counts) float64 {
	if n == nil {
		return math.NaN()
	}
	memory, redis := n.fromMemory, n.fromRedis
	if past != nil {
		memory, redis = memory-past.fromMemory, redis-past.fromRedis
	}
	return memory / (memory + redis)
}
