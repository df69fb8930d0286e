package caddymodule

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/sale"
)

// countFast counts a refusal twice: as any other, and as a fast one. It says whether there
// is an answer.
func (g *Gate) countFast(a *answerNo, saleID string) bool {
	if a == nil {
		return false
	}
	m := meters()
	m.fast.Inc()
	switch c := g.fastCounters[a.index].Load(); {
	case c == nil: // often there is one sale
		c = &refusals{saleID, m.attempt(saleID, "refused", a.kind.Reason)}
		g.fastCounters[a.index].Store(c)
		c.Inc()
	case c.sale == saleID:
		c.Inc()
	default:
		m.attempt(saleID, "refused", a.kind.Reason).Inc()
	}
	return true
}

// countFastGuard is countFast of a guard, which knows of no sale.
func countFastGuard(a *answerNo) bool {
	if a == nil {
		return false
	}
	meters().fast.Inc()
	countAttempt("", "refused", sale.Malformed)
	return true
}

// refusals counts those of one reason in one sale.
type refusals struct {
	sale string
	prometheus.Counter
}
