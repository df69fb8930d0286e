package app

import "github.com/prometheus/client_golang/prometheus"

// listsCollector reports how many entries each named list has, for the app that runs at the
// time of a scrape.
type listsCollector struct{ entries *prometheus.Desc }

func newListsCollector() listsCollector {
	return listsCollector{prometheus.NewDesc("stockgate_list_entries",
		"Entries of a list, as this edge knows it.",
		[]string{"list"}, nil)}
}

// Describe sends the descriptions of the series.
func (c listsCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.entries }

// Collect reports the lists. Without a running app it reports nothing.
func (c listsCollector) Collect(ch chan<- prometheus.Metric) {
	app := Active()
	if app == nil {
		return
	}
	for name, l := range app.lists.All() {
		if n, ok := l.Entries(); ok {
			ch <- prometheus.MustNewConstMetric(c.entries, prometheus.GaugeValue, float64(n), name)
		}
	}
}

// Interface guards
var _ prometheus.Collector = listsCollector{}
