// Package meter has the counters of this process, in the form of Prometheus.
package meter

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/filters/scope"
	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/sale"
)

// All returns this process's counters. They are made once and registered again in the
// registry of every configuration, so that counts survive a reload.
var All = sync.OnceValue(newMeters)

type meters struct {
	attempts    *prometheus.CounterVec
	reserve     prometheus.Histogram
	answered    *prometheus.HistogramVec
	won, lost   prometheus.Observer // of answered, found once
	redisErrors *prometheus.CounterVec
	probes      *prometheus.CounterVec
	unbacked    prometheus.Counter
	dropped     prometheus.Counter
	fenced      prometheus.Gauge
	fenceLost   *prometheus.CounterVec
	API         *prometheus.CounterVec
	nothingLeft *prometheus.CounterVec
	fromMemory  prometheus.Counter // of nothingLeft, found once
	fromRedis   prometheus.Counter
	Fast        prometheus.Counter
	Around      *prometheus.CounterVec
	CutReaders  prometheus.Counter
	Unclear     *prometheus.CounterVec
	bypassed    *prometheus.CounterVec
	challenges  *prometheus.CounterVec
	lookup      lookupMetrics
	ledger      ledgerMetrics
	outbox      outboxMetrics
	webhooks    webhookMetrics
	mirror      mirrorMetrics
	notify      notifyMetrics
	shop        shopAnswers

	shadow        *prometheus.CounterVec
	shadowSkipped *prometheus.CounterVec

	attemptCounters, shadowCounters resolvedCounters
}

// resolvedCounters finds a counter of attempts without an allocation. The map is replaced, never
// changed.
type resolvedCounters struct {
	vec      *prometheus.CounterVec
	resolved atomic.Pointer[map[attemptLabels]prometheus.Counter]
	adding   sync.Mutex
}

// attemptLabels are the labels of one counter of attempts.
type attemptLabels struct {
	sale, outcome string
	reason        sale.Reason
}

func newMeters() *meters {
	m := &meters{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_attempts_total",
			Help: "Attempts by outcome (refused, passed, confirmed, released, in_doubt, held, unbacked, repeated, replayed) and reason of a refusal.",
		}, []string{"sale", "outcome", "reason"}),
		reserve: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "stockgate_reserve_seconds",
			Help:    "Time of a reserve, from its queue to Redis's answer.",
			Buckets: reserveBounds,
		}),
		answered: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "stockgate_answer_seconds",
			Help:    "Time of an attempt, from the gate to its answer: won (ordered, or held for the shop to decide) or lost.",
			Buckets: answerBounds,
		}, []string{"result"}),
		redisErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_redis_errors_total",
			Help: "Calls that Redis did not answer: reserve, settle, watch, reap, probe or rate.",
		}, []string{"during"}),
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_probes_total",
			Help: "Questions about holds in doubt: present, absent, unknown (asked again) or not_asked (no ref fits).",
		}, []string{"sale", "verdict"}),
		unbacked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stockgate_unbacked_total",
			Help: "Orders that the shop took when others had their units.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stockgate_backlog_dropped_total",
			Help: "Outcomes that did not fit into the backlog: their holds end by their deadline.",
		}),
		fenced: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stockgate_fenced_sales",
			Help: "Sales that wait, after Redis was promoted or restarted, for what edges know, or whose Redis is older than this edge knows.",
		}),
		fenceLost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_fence_lost_total",
			Help: "Given up by a fence: promise (the units are gone), edge (it did not come) or movement (no edge knew it).",
		}, []string{"what"}),
		API: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_api_requests_total",
			Help: "Requests to the shop's API, by operation and answer: ok, or the reason.",
		}, []string{"operation", "answer"}),
		nothingLeft: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_nothing_left_total",
			Help: "Attempts refused as sold_out or all_held, by redis or from memory.",
		}, []string{"by"}),
		Fast: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stockgate_fast_refusals_total",
			Help: "Refusals by the listener wrapper; stockgate_attempts_total has them too.",
		}),
		Around: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_around_total",
			Help: "Requests for a gated route that met no gate on the way to its upstream: refused, or passed where the site has no stockgate_guard.",
		}, []string{"answer"}),
		CutReaders: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stockgate_cut_readers_total",
			Help: "Clients that were cut off because they did not read the answer; their orders stand.",
		}),
		Unclear: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_unclear_total",
			Help: "Requests refused because a server could take them for an attempt.",
		}, []string{"cause"}),
		bypassed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_bypassed_total",
			Help: "Orders that passed without a reservation, by the shop's answer: 2xx or other.",
		}, []string{"gate", "answer"}),
		challenges: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_challenges_total",
			Help: "Attempts that were asked for a solution.",
		}, []string{"gate"}),
		lookup: newLookupMetrics(),
		ledger: newLedgerMetrics(),
		outbox: newOutboxMetrics(),

		webhooks: newWebhookMetrics(),
		mirror:   newMirrorMetrics(),
		notify:   newNotifyMetrics(),
	}
	m.shop.open()
	m.won, m.lost = m.answered.WithLabelValues("won"), m.answered.WithLabelValues("lost")
	m.fromMemory, m.fromRedis = m.nothingLeft.WithLabelValues("memory"), m.nothingLeft.WithLabelValues("redis")
	for _, answer := range []string{"refused", "passed"} {
		m.Around.WithLabelValues(answer)
	}
	for _, cause := range scope.Causes() {
		m.Unclear.WithLabelValues(string(cause))
	}
	for _, what := range []string{"promise", "edge", "movement"} {
		m.fenceLost.WithLabelValues(what)
	}
	for _, during := range duringWords {
		m.redisErrors.WithLabelValues(during) // a series that exists from the start can be monitored
	}
	m.shadow, m.shadowSkipped = newShadowMetrics()
	m.attemptCounters.open(m.attempts)
	m.shadowCounters.open(m.shadow)
	return m
}

// Register registers the counters, and further collectors, in a configuration's registry.
// It may be called for any number of registries, and again for the same one.
func Register(registry *prometheus.Registry, more ...prometheus.Collector) error {
	m := All()
	all := []prometheus.Collector{m.attempts, m.reserve, m.answered, m.redisErrors, m.probes, m.unbacked, m.dropped, m.fenced, m.fenceLost, m.nothingLeft, m.Fast, m.Around, m.CutReaders, m.Unclear, m.bypassed, m.API, m.shadow, m.shadowSkipped, m.lookup.total, m.lookup.seconds, m.lookup.asks, m.webhooks.total, m.shop.vec, m.challenges}
	all = append(append(all, more...), m.ledger.collectors()...)
	all = append(append(all, m.mirror.collectors()...), m.notify.collectors()...)
	for _, c := range append(all, m.outbox.collectors()...) {
		err := registry.Register(c)
		// ours, from before: fine; another module's collector under our name is an error
		if existing, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok && existing.ExistingCollector == c {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CountAttempt counts one attempt when its outcome is known: refused, passed, confirmed,
// released, in_doubt, held (the shop decides later), unbacked, repeated (an order forwarded
// again) or replayed. Every saleID stays a label for good: it must be in the catalogue, or
// empty if the attempt led to no sale.
func CountAttempt(saleID, outcome string, reason sale.Reason) {
	All().Attempt(saleID, outcome, reason).Inc()
}

// Attempt returns the counter that CountAttempt increments.
func (m *meters) Attempt(saleID, outcome string, reason sale.Reason) prometheus.Counter {
	return m.attemptCounters.find(attemptLabels{saleID, outcome, reason})
}

// CountBypassed counts an order that passed without a reservation, by the status of the shop; 0: there is none.
func CountBypassed(gate string, status int) {
	answer := "other"
	if status/100 == 2 {
		answer = "2xx"
	}
	All().bypassed.WithLabelValues(gate, answer).Inc()
}

// Won and Lost note how long an attempt took at this edge whose buyer got the goods, or did
// not. Attempts in doubt, and those that repeat an earlier one, are neither. saleID is as in CountAttempt.
func Won(saleID string, took time.Duration) {
	All().won.Observe(took.Seconds())
	times.of(saleID).won.observe(took)
}

func Lost(saleID string, took time.Duration) {
	All().lost.Observe(took.Seconds())
	times.of(saleID).lost.observe(took)
}

// CountProbe counts one request about a hold in doubt, by the probe answer or as not_asked.
// saleID must be in the catalogue.
func CountProbe(saleID, verdict string) { All().probes.WithLabelValues(saleID, verdict).Inc() }

func (c *resolvedCounters) open(vec *prometheus.CounterVec) {
	c.vec = vec
	c.resolved.Store(new(map[attemptLabels]prometheus.Counter))
}

func (c *resolvedCounters) find(labels attemptLabels) prometheus.Counter {
	if counter, ok := (*c.resolved.Load())[labels]; ok {
		return counter
	}
	return c.resolve(labels)
}

// resolve finds a counter for the first time.
func (c *resolvedCounters) resolve(labels attemptLabels) prometheus.Counter {
	c.adding.Lock()
	defer c.adding.Unlock()
	next := maps.Clone(*c.resolved.Load())
	if next == nil {
		next = make(map[attemptLabels]prometheus.Counter)
	}
	counter := c.vec.WithLabelValues(labels.sale, labels.outcome, string(labels.reason))
	next[labels] = counter
	c.resolved.Store(&next)
	return counter
}

// duringWords are the purposes of a call to Redis.
var duringWords = []string{"reserve", "settle", "watch", "reap", "probe", "rate"}

// EdgeEvents counts the events of an edge.
type EdgeEvents struct{}

func (EdgeEvents) Reserved(sale string, took time.Duration) {
	All().reserve.Observe(took.Seconds())
	times.of(sale).reserve.observe(took)
}

func (EdgeEvents) RedisFailed(during string) { All().redisErrors.WithLabelValues(during).Inc() }

func (EdgeEvents) BacklogDropped() { All().dropped.Inc() }

func (EdgeEvents) SoldUnbacked() { All().unbacked.Inc() }

// SoldOther counts an order that has other units than were reserved.
func (EdgeEvents) SoldOther(than string) { CountAsk(than) }

func (EdgeEvents) NothingLeft(remembered bool) {
	if remembered {
		All().fromMemory.Inc()
	} else {
		All().fromRedis.Inc()
	}
}

func (EdgeEvents) Fenced(change int) { All().fenced.Add(float64(change)) }

func (EdgeEvents) Lost(promises, edges, movements int64) {
	All().fenceLost.WithLabelValues("promise").Add(float64(promises))
	All().fenceLost.WithLabelValues("edge").Add(float64(edges))
	All().fenceLost.WithLabelValues("movement").Add(float64(movements))
}

// Interface guard
var _ edge.Metrics = EdgeEvents{}
