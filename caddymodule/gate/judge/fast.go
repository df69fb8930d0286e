package judge

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/attempt"
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

// FastRefusals lets a listener wrapper refuse for a gate. Caddy's metrics do not include its
// answers, and the access log only those that Log asks for; the metrics of Stockgate count them.
//
// The gate must read all its values itself: a placeholder that another directive sets, such
// as {http.auth.user.id}, is an error.
type FastRefusals struct {
	// Force: allow handlers before the gate that may change what the client gets or the gate
	// sees; they do not run on a fast refusal. Without it, the gate itself refuses a request
	// that meets such a handler.
	Force bool `json:"force,omitempty"`
	// Log is the share of the fast refusals that get a line in the access log, above 0% and up to 100%. Default:
	// none.
	//
	// The line has the field `sampled`.
	Log string `json:"log,omitempty"`
}

// provisionFast checks what fast refusals of this gate require.
func (j *Judge) provisionFast() error {
	if j.FastRefusals == nil {
		return nil
	}
	if err := j.fastConflict(); err != nil {
		return err
	}
	if j.FastRefusals.Log != "" {
		share, err := accesslog.ParseShare(j.FastRefusals.Log)
		if err != nil {
			return fmt.Errorf("fast_refusals: %w", err)
		}
		j.fastLogged = share
	}
	if j.server == nil || !j.app.HasListener(j.server) {
		return fmt.Errorf("fast_refusals: the server of this gate has no listener wrapper stockgate: write `servers { listener_wrappers { stockgate } }` in the global options")
	}
	j.fastCounters = make([]atomic.Pointer[refusals], len(sale.Kinds))
	return nil
}

// FastLogged is the share of the fast refusals that get a line in the access log.
func (j *Judge) FastLogged() accesslog.Share { return j.fastLogged }

// fastConflict returns an error for a value that the gate does not read itself.
func (j *Judge) fastConflict() error {
	for _, expr := range j.Values() {
		// a value that does not compile is reported elsewhere
		if v, err := attempt.Compile(expr); err == nil && v.Kind() == attempt.Text {
			return fmt.Errorf("fast_refusals: the value %s is known to Caddy only when it handles the request: take it from the request itself, such as {header.X} or {jwt.sub}", expr)
		}
	}
	return nil
}
