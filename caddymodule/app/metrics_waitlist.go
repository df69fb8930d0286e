package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/internal/edge"
)

// waitlistGauges are the series about people who wait, of sales with a waiting list.
type waitlistGauges struct{ people, offers, most *prometheus.Desc }

func newWaitlistGauges() waitlistGauges {
	gauge := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"sale"}, nil) }
	return waitlistGauges{
		people: gauge("stockgate_waitlist_people", "People on the waiting list."),
		offers: gauge("stockgate_waitlist_offers", "Open offers."),
		most:   gauge("stockgate_waitlist_most", "People whom the waiting list takes."),
	}
}

func (g *waitlistGauges) all() []*prometheus.Desc {
	return []*prometheus.Desc{g.people, g.offers, g.most}
}

// report reports the list of a sale, if it has one.
func (g *waitlistGauges) report(d *edgeruntime.Runtime, l *edge.Listing, gauge func(*prometheus.Desc, float64, ...string)) {
	people, offered, ok := d.OnList(l)
	if !ok {
		return
	}
	gauge(g.people, float64(people), l.Sale.ID)
	gauge(g.offers, float64(offered), l.Sale.ID)
	gauge(g.most, float64(l.Sale.Waitlist.Max), l.Sale.ID)
}
