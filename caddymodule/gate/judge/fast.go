package judge

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// CountFast counts a refusal twice: like any other, and as a fast one, of an attempt that
// began at that time. It reports whether there is an answer.
func (j *Judge) CountFast(a *refuse.ReasonAnswer, saleID string, began time.Time) bool {
	if a == nil {
		return false
	}
	meter.Lost(saleID, time.Since(began))
	m := meter.All()
	m.Fast.Inc()
	switch c := j.fastCounters[a.Index].Load(); {
	case c == nil: // often there is one sale
		c = &refusals{saleID, m.Attempt(saleID, "refused", a.Kind.Reason)}
		j.fastCounters[a.Index].Store(c)
		c.Inc()
	case c.sale == saleID:
		c.Inc()
	default:
		m.Attempt(saleID, "refused", a.Kind.Reason).Inc()
	}
	return true
}

// CountFastGuard is CountFast for a guard, which knows no sale.
func CountFastGuard(a *refuse.ReasonAnswer) bool {
	if a == nil {
		return false
	}
	meter.All().Fast.Inc()
	meter.CountAttempt("", "refused", sale.Malformed)
	return true
}

// refusals counts the refusals with one reason in one sale.
type refusals struct {
	sale string
	prometheus.Counter
}

// provisionFast checks what fast refusals of this gate require.
func (j *Judge) provisionFast() error {
	if j.FastRefusals == nil {
		return nil
	}
	if err := j.OpenFast(); err != nil {
		return err
	}
	if j.server == nil || !j.App.HasListener(j.server.Name()) {
		return fmt.Errorf("fast_refusals: the server of this gate has no listener wrapper stockgate: write `servers { listener_wrappers { stockgate } }` in the global options")
	}
	j.fastCounters = make([]atomic.Pointer[refusals], len(sale.Kinds))
	return nil
}
