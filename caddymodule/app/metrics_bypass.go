package app

import "github.com/prometheus/client_golang/prometheus"

// bypassCollector reports which gates are bypassed, for the app that runs at the time of a scrape.
type bypassCollector struct{ on *prometheus.Desc }

func newBypassCollector() bypassCollector {
	return bypassCollector{prometheus.NewDesc("stockgate_bypass",
		"1: orders of the gate pass at this edge without a reservation, or have passed and its sales are not paused yet; absent: none pass.",
		[]string{"gate"}, nil)}
}

// Describe sends the descriptions of the series.
func (c bypassCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.on }

// Collect reports the bypasses. Without a running app it reports nothing.
func (c bypassCollector) Collect(ch chan<- prometheus.Metric) {
	app := Active()
	if app == nil {
		return
	}
	own, _ := app.OwnBypasses()
	for _, p := range own {
		ch <- prometheus.MustNewConstMetric(c.on, prometheus.GaugeValue, 1, p.Gate)
	}
}

// Interface guard
var _ prometheus.Collector = bypassCollector{}
