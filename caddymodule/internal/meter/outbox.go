package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/outbox"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// outboxMetrics are the series of the outbox.
type outboxMetrics struct {
	lag, lagSeconds         *prometheus.GaugeVec
	sent, answers, failures *prometheus.CounterVec
}

func newOutboxMetrics() outboxMetrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"sale"})
	}
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	m := outboxMetrics{
		lag:        gauge("stockgate_outbox_lag_movements", "Movements that the receiver lacks."),
		lagSeconds: gauge("stockgate_outbox_lag_seconds", "How long the oldest movement that the receiver lacks has waited."),
		sent:       counter("stockgate_outbox_sent_total", "Movements that the receiver has taken from this edge.", "sale"),
		answers:    counter("stockgate_outbox_answers_total", "Answers of the receiver: 2xx, 3xx, 4xx, 5xx or none.", "answer"),
		failures:   counter("stockgate_outbox_failures_total", "Failures to send movements: journal (Redis, or the ledger behind it) or receiver.", "where"),
	}
	for _, answer := range []string{"2xx", "3xx", "4xx", "5xx", "none"} {
		m.answers.WithLabelValues(answer) // a series that exists from the start can be monitored
	}
	for _, where := range []string{"journal", "receiver"} {
		m.failures.WithLabelValues(where)
	}
	return m
}

func (m *outboxMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.lag, m.lagSeconds, m.sent, m.answers, m.failures}
}

func (JournalService) OutboxLag(sale string, movements int64, oldest time.Duration) {
	m := &All().outbox
	m.lag.WithLabelValues(sale).Set(float64(movements))
	m.lagSeconds.WithLabelValues(sale).Set(oldest.Seconds())
	lateOutbox.set(sale, ledger.Late(journal.Head{Age: oldest}))
}

func (JournalService) NoOutbox(sale string) {
	m := &All().outbox
	m.lag.DeleteLabelValues(sale)
	m.lagSeconds.DeleteLabelValues(sale)
	lateOutbox.set(sale, false)
	lateOutbox.note(sale, nil)
}

func (JournalService) OutboxTrouble(sale string, err error) { lateOutbox.note(sale, err) }

func (JournalService) OutboxSent(sale string, movements int) {
	All().outbox.sent.WithLabelValues(sale).Add(float64(movements))
}

func (JournalService) OutboxPosted(answer string) {
	All().outbox.answers.WithLabelValues(answer).Inc()
}

func (JournalService) OutboxFailed(where string) { All().outbox.failures.WithLabelValues(where).Inc() }

// Interface guards
var _ outbox.Metrics = JournalService{}
