package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/internal/store/queue"
)

// queueGauges are the series about the orders that wait for the shop, of sales that have a
// queue.
type queueGauges struct{ waiting, atShop, oldest, bytes, paused, pace, skipped *prometheus.Desc }

func newQueueGauges() queueGauges {
	gauge := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"sale"}, nil) }
	return queueGauges{
		waiting: gauge("stockgate_queue_waiting", "Orders that wait for the shop."),
		atShop:  gauge("stockgate_queue_at_shop", "Orders that are at the shop."),
		oldest:  gauge("stockgate_queue_oldest_seconds", "How long the first order in line has waited."),
		bytes:   gauge("stockgate_queue_bytes", "What waiting orders take in Redis."),
		paused:  gauge("stockgate_queue_paused", "1: an operator or the shop has stopped the line."),
		pace:    gauge("stockgate_queue_pace", "Orders a second that went to the shop in the last 10 seconds."),
		skipped: gauge("stockgate_queue_skipped", "Orders in line that no gate of a running edge can send."),
	}
}

func (g *queueGauges) all() []*prometheus.Desc {
	return []*prometheus.Desc{g.waiting, g.atShop, g.oldest, g.bytes, g.paused, g.pace, g.skipped}
}

// report reports the line of a sale; nil: it has none.
func (g *queueGauges) report(id string, s *queue.State, gauge func(*prometheus.Desc, float64, ...string)) {
	if s == nil {
		return
	}
	gauge(g.waiting, float64(s.Waiting), id)
	gauge(g.atShop, float64(s.AtShop), id)
	gauge(g.oldest, s.Oldest.Seconds(), id)
	gauge(g.bytes, float64(s.Bytes), id)
	gauge(g.paused, truth(s.Paused || s.HeldUp > 0), id)
	gauge(g.pace, s.Pace, id)
	gauge(g.skipped, float64(s.Skipped), id)
}
