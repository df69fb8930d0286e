package app

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/caddymodule/overviewcache"
	"github.com/stockgate/stockgate/internal/sale"
)

const (
	// scrapeTimeout bounds how long a scrape waits for Redis. A sale that Redis has not
	// answered by then is reported from the cache.
	scrapeTimeout = time.Second
	// scrapeAtOnce is the number of sales that are read at the same time.
	scrapeAtOnce = 8
	// unitSeries is the maximum number of stock cells of a sale that have series of their
	// own. A larger sale is summed up under the sku "*".
	unitSeries = 1_000
)

// metricsCacheOptions bound the cells by unitSeries.
var metricsCacheOptions = overviewcache.Options{Most: unitSeries, Lines: true, Queue: true, Longest: 30 * time.Second}

// overviewCollector reports the stock of every sale and the state of the edge, for the app
// that runs at the time of a scrape.
type overviewCollector struct {
	cache atomic.Pointer[overviewcache.Cache]

	units, lost, open, balanced, oldest, unbacked, lead, atRisk, stopped, backlog, ready, silent, degraded *prometheus.Desc

	queue    queueGauges
	waitlist waitlistGauges
}

func newOverviewCollector() *overviewCollector {
	return &overviewCollector{
		queue:    newQueueGauges(),
		waitlist: newWaitlistGauges(),
		units: prometheus.NewDesc("stockgate_units",
			`Units by state (available, held, in_doubt, confirmed) and in all (stock); sku "*" sums up a sale of more than 1,000 cells.`,
			[]string{"sale", "sku", "region", "state"}, nil),
		lost: prometheus.NewDesc("stockgate_sale_lost",
			"1: Redis had the sale and has it no more: `caddy stockgate rebuild`.", []string{"sale"}, nil),
		open: prometheus.NewDesc("stockgate_sale_open",
			"1: the sale is open, in its window or not.", []string{"sale"}, nil),
		balanced: prometheus.NewDesc("stockgate_balanced",
			"1: stock = available + held + in_doubt + confirmed in every cell. 0 also for a sale that is lost.", []string{"sale"}, nil),
		oldest: prometheus.NewDesc("stockgate_oldest_in_doubt_seconds",
			"Age of the oldest hold in doubt.", []string{"sale"}, nil),
		unbacked: prometheus.NewDesc("stockgate_unbacked",
			"Orders without stock that are not resolved.", []string{"sale"}, nil),
		lead: prometheus.NewDesc("stockgate_clock_lead_seconds",
			"How far Redis's time has stepped back from the sale's clock; below 0: forward.", []string{"sale"}, nil),
		atRisk: prometheus.NewDesc("stockgate_units_at_risk",
			"Units that were sold and that a failover may lose.", []string{"sale"}, nil),
		stopped: prometheus.NewDesc("stockgate_at_risk_stopped",
			"1: this edge sells nothing, because at_risk is reached.", []string{"sale"}, nil),
		backlog: prometheus.NewDesc("stockgate_backlog",
			"Outcomes that Redis could not be told yet.", nil, nil),
		ready: prometheus.NewDesc("stockgate_ready",
			"1: this edge may sell; else the log says why not.", nil, nil),
		silent: prometheus.NewDesc("stockgate_silent_edges",
			"Edges that were not stopped and are not heard; the doctor names them.", nil, nil),
		degraded: prometheus.NewDesc("stockgate_degraded",
			"1: this edge works without a part: sale (lost), ledger or outbox (behind), view (Redis is asked about each attempt), backlog, rates or notify.",
			[]string{"part"}, nil),
	}
}

// Describe sends the descriptions of the series.
func (b *overviewCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append(append(b.queue.all(), b.waitlist.all()...), b.units, b.lost, b.open, b.balanced, b.oldest, b.unbacked, b.lead, b.atRisk, b.stopped, b.backlog, b.ready, b.silent, b.degraded) {
		ch <- d
	}
}

// Collect reads the overviews and reports them. Without a running app it reports nothing.
func (b *overviewCollector) Collect(ch chan<- prometheus.Metric) {
	app := Active()
	if app == nil {
		return
	}
	d := app.Runtime()
	if d == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	gauge(b.backlog, float64(d.Backlog()))
	gauge(b.ready, truth(d.Ready() == nil))
	gauge(b.silent, float64(len(d.Silent())))
	missing := app.missing()
	for _, part := range degradable {
		gauge(b.degraded, truth(len(missing[part]) > 0), part)
	}

	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	cache := overviewcache.Of(&b.cache, d, metricsCacheOptions)
	slots := make(chan struct{}, scrapeAtOnce)
	var readers sync.WaitGroup
	for listing := range d.Catalogue().All {
		gauge(b.lost, truth(listing.Lost()), listing.Sale.ID)
		gauge(b.open, truth(listing.Status == sale.Open), listing.Sale.ID)
		if people, offered, ok := d.OnList(listing); ok {
			b.waitlist.report(listing.Sale.ID, people, offered, listing.Sale.Waitlist.Max, gauge)
		}
		if listing.Lost() { // its units are unknown: the last known ones would be wrong
			gauge(b.balanced, 0, listing.Sale.ID)
			continue
		}
		state := d.AtRisk(listing.Sale.ID)
		gauge(b.atRisk, float64(state.Units), listing.Sale.ID)
		gauge(b.stopped, truth(state.Stopped), listing.Sale.ID)
		slots <- struct{}{}
		readers.Go(func() {
			defer func() { <-slots }()
			s, ok := cache.Latest(ctx, listing.Sale.ID)
			if !ok {
				return
			}
			id := listing.Sale.ID
			for _, c := range s.Reported() {
				gauge(b.units, float64(c.Stock), id, c.SKU, c.Region, "stock")
				gauge(b.units, float64(c.Available), id, c.SKU, c.Region, "available")
				gauge(b.units, float64(c.Held), id, c.SKU, c.Region, "held")
				gauge(b.units, float64(c.InDoubt), id, c.SKU, c.Region, "in_doubt")
				gauge(b.units, float64(c.Confirmed), id, c.SKU, c.Region, "confirmed")
			}
			b.queue.report(id, s.Queue, gauge)
			gauge(b.balanced, truth(s.Overview.Balanced), id)
			gauge(b.unbacked, float64(s.Overview.Unbacked), id)
			gauge(b.lead, s.Overview.Lead.Seconds(), id)
			age := 0.0
			if since := s.Overview.OldestInDoubt; !since.IsZero() {
				age = max(0, listing.Now().Sub(since).Seconds())
			}
			gauge(b.oldest, age, id)
		})
	}
	readers.Wait()
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// collectors report what the running app knows. Like the counters, they are made once for
// the process.
var collectors = sync.OnceValue(func() []prometheus.Collector {
	return []prometheus.Collector{newOverviewCollector(), newListsCollector(), newStoreCollector(), newBypassCollector()}
})

// Interface guard
var _ prometheus.Collector = (*overviewCollector)(nil)
