package meter

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// ledgerMetrics are the series of the journals and of the ledger.
type ledgerMetrics struct {
	length, lag, lagSeconds *prometheus.GaugeVec
	drift                   *prometheus.GaugeVec
	drained, failures       *prometheus.CounterVec
}

func newLedgerMetrics() ledgerMetrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"sale"})
	}
	m := ledgerMetrics{
		length:     gauge("stockgate_journal_length", "Movements that Redis keeps."),
		lag:        gauge("stockgate_ledger_lag_movements", "Movements that the ledger lacks."),
		lagSeconds: gauge("stockgate_ledger_lag_seconds", "How long the oldest movement that the ledger lacks has waited."),
		drift: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stockgate_drift", Help: "Cells that are not as they must be: balance (their units are not all somewhere) or ledger (it says otherwise). Not 0: run `caddy stockgate reconcile`.",
		}, []string{"sale", "against"}),
		drained: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_ledger_drained_total", Help: "Movements that this edge has copied into the ledger.",
		}, []string{"sale"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_ledger_failures_total", Help: "Copies that failed: journal (Redis) or ledger (database).",
		}, []string{"where"}),
	}
	for _, where := range []string{"journal", "ledger"} {
		m.failures.WithLabelValues(where) // a series that exists from the start can be monitored
	}
	return m
}

func (m *ledgerMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.length, m.lag, m.lagSeconds, m.drift, m.drained, m.failures}
}

// JournalService counts the events of the journal service.
type JournalService struct{}

func (JournalService) Journal(sale string, h journal.Head, withLedger bool, lacks error) {
	m := &All().ledger
	m.length.WithLabelValues(sale).Set(float64(h.Length))
	if withLedger {
		m.lag.WithLabelValues(sale).Set(float64(h.Behind()))
		m.lagSeconds.WithLabelValues(sale).Set(h.Age.Seconds())
	}
	lateLedger.set(sale, withLedger && (lacks != nil || ledger.Late(h)))
	lateLedger.note(sale, lacks)
}

func (JournalService) NoJournal(sale string) {
	m := &All().ledger
	m.length.DeleteLabelValues(sale)
	m.lag.DeleteLabelValues(sale)
	m.lagSeconds.DeleteLabelValues(sale)
	lateLedger.set(sale, false)
	lateLedger.note(sale, nil)
}

func (JournalService) Drift(sale, against string, cells int) {
	All().ledger.drift.WithLabelValues(sale, against).Set(float64(cells))
}

func (JournalService) NoDrift(sale, against string) {
	All().ledger.drift.DeleteLabelValues(sale, against)
}

func (JournalService) Drained(sale string, movements int) {
	All().ledger.drained.WithLabelValues(sale).Add(float64(movements))
}

func (JournalService) DrainFailed(where string) { All().ledger.failures.WithLabelValues(where).Inc() }

// Interface guards
var (
	_ ledger.TrimMetrics  = JournalService{}
	_ ledger.DrainMetrics = JournalService{}
)
