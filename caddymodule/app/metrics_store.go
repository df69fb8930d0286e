package app

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// storeCollector reports the server of `store`, for the app that runs at the time of a scrape. It asks
// the server nothing: what it reports is a few seconds old at most.
type storeCollector struct{ up, restarts, cut, files, free, lasts, rewriting, syncs *prometheus.Desc }

func newStoreCollector() *storeCollector {
	series := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &storeCollector{
		up:        series("stockgate_store_up", "Whether the redis-server of store runs and answers: 1 or 0."),
		restarts:  series("stockgate_store_restarts_total", "How often the redis-server of store ended by itself and was started again."),
		cut:       series("stockgate_store_cut_bytes", "Bytes that were no whole record at the end of the append-only file and that the redis-server of store has cut off, since Caddy started."),
		files:     series("stockgate_store_files_bytes", "Bytes of all files of store."),
		free:      series("stockgate_store_disk_free_bytes", "Bytes that are left on the disk of store."),
		lasts:     series("stockgate_store_disk_lasts_seconds", "How long the disk of store lasts at the pace of the last ten minutes, apart from rewrites; +Inf: the files do not grow. Not there until a pace is known."),
		rewriting: series("stockgate_store_rewriting", "Whether the redis-server of store is rewriting its append-only file: 1 or 0."),
		syncs:     series("stockgate_store_sync_seconds", "How long the disk of store takes to write and sync a record, every few seconds; the quantiles cover the last ten minutes."),
	}
}

// Describe sends the descriptions of the series.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.restarts, c.cut, c.files, c.free, c.lasts, c.rewriting, c.syncs} {
		ch <- d
	}
}

// Collect reports the server. Without a store it reports nothing.
func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	app := Active()
	if app == nil || app.Runtime() == nil {
		return
	}
	s := app.Runtime().OwnServer()
	if s == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v)
	}
	gauge(c.up, truth(s.Up))
	ch <- prometheus.MustNewConstMetric(c.restarts, prometheus.CounterValue, float64(s.Restarts))
	gauge(c.cut, float64(s.Cut))
	gauge(c.files, float64(s.Files))
	gauge(c.free, float64(s.Free))
	if lasts, growing := s.Lasts(); growing {
		gauge(c.lasts, lasts.Seconds())
	} else if s.Pace == 0 {
		gauge(c.lasts, math.Inf(1))
	}
	gauge(c.rewriting, truth(s.Rewriting))
	if s.Syncs.Count > 0 {
		ch <- prometheus.MustNewConstSummary(c.syncs, s.Syncs.Count, s.Syncs.Sum.Seconds(), map[float64]float64{0.5: s.Syncs.Median.Seconds(), 0.99: s.Syncs.Late.Seconds()})
	}
}

// Interface guard
var _ prometheus.Collector = (*storeCollector)(nil)
