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
		up:        series("stockgate_store_up", "1: the redis-server of store runs and answers."),
		restarts:  series("stockgate_store_restarts_total", "How often its redis-server ended by itself."),
		cut:       series("stockgate_store_cut_bytes", "Bytes that were no whole record at the end of its file, cut off since Caddy started."),
		files:     series("stockgate_store_files_bytes", "Bytes of its files."),
		free:      series("stockgate_store_disk_free_bytes", "Bytes left on its disk."),
		lasts:     series("stockgate_store_disk_lasts_seconds", "How long its disk lasts at the pace of the last ten minutes; +Inf: the files do not grow; absent: not known yet."),
		rewriting: series("stockgate_store_rewriting", "1: its redis-server is rewriting its file."),
		syncs:     series("stockgate_store_sync_seconds", "How long its disk takes to write and sync a record: half and 99 % of the last ten minutes."),
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
