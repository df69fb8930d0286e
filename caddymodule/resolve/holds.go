package resolve

import (
	"slices"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters/outcome"
)

// hold is what the shop's answer settles.
type hold struct {
	sale, id string
	then     outcome.Decision
}

func (h hold) fields() []zap.Field {
	return []zap.Field{zap.String("sale", h.sale), zap.String("reservation", h.id)}
}

// add adds what the shop's answer settles. Of several events about one hold, in any order, a payment
// is the last word: between a release and the payment after it, others could take the units.
func (s *settling) add(h hold) {
	at := slices.IndexFunc(s.holds, func(o hold) bool { return o.sale == h.sale && o.id == h.id })
	if at < 0 {
		s.holds = append(s.holds, h)
		return
	}
	meter.CountWebhook(meter.WebhookSettled)
	if h.then == outcome.Confirm {
		s.holds[at].then = outcome.Confirm
	}
}

// fields names the hold, or the first of several, in the log.
func (s *settling) fields() []zap.Field {
	if len(s.holds) == 1 {
		return s.holds[0].fields()
	}
	return append(s.holds[0].fields(), zap.Int("holds", len(s.holds)))
}
