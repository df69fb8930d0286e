package app

import "github.com/prometheus/client_golang/prometheus"

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

// report reports the list of a sale: the people on it, their open offers, and how many people it takes.
func (g *waitlistGauges) report(id string, people, offered int, most int64, gauge func(*prometheus.Desc, float64, ...string)) {
	gauge(g.people, float64(people), id)
	gauge(g.offers, float64(offered), id)
	gauge(g.most, float64(most), id)
}
