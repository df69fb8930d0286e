package resolve

import (
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters"
)

// A webhook names its certificate before it is known whether it is the provider's. These bound the fetches of
// certificates that are not known: forged names are many, the provider's few.
const (
	// fetchAtOnce is how many certificates may be fetched at a time.
	fetchAtOnce = 4
	// One client may have fetchClientBurst fetched at once, and fetchClientRate in a minute.
	fetchClientRate, fetchClientBurst = 6, 6
	// One that was valid may be fetched again knownBurst times at once and this often in a minute, for all clients.
	knownRate, knownBurst = 20, 4
	// All clients together may have this often a certificate fetched.
	fetchRate, fetchBurst = 60, 30
)

// fetchLimits bounds what is fetched.
type fetchLimits struct {
	slots   *filters.Slots
	clients *filters.RateTable
	all     *filters.RateTable
	known   *filters.RateTable // by URL
}

func newFetchLimits() *fetchLimits {
	return &fetchLimits{
		slots:   filters.NewSlots(fetchAtOnce),
		clients: filters.NewRateTable(filters.Rate{Events: fetchClientRate, Window: time.Minute, Burst: fetchClientBurst, Keys: badClient}),
		all:     filters.NewRateTable(filters.Rate{Events: fetchRate, Window: time.Minute, Burst: fetchBurst, Keys: 1}),
		known:   filters.NewRateTable(filters.Rate{Events: knownRate, Window: time.Minute, Burst: knownBurst, Keys: maxCertificates}),
	}
}

// begin makes room for a fetch for a client; the caller must call done. known: the certificate was valid before,
// so that forged names do not keep it from being fetched again.
func (l *fetchLimits) begin(client, url string, known bool, now time.Time) (done func(), no *refusal) {
	if wait := l.take(client, url, known, now); wait > 0 {
		return nil, &refusal{
			status: http.StatusTooManyRequests, counts: meter.WebhookLimited, retryAfter: int(wait/time.Second) + 1,
			text: "too many webhooks with a certificate that is not known: deliver it again",
		}
	}
	if !l.slots.Take() {
		return nil, unavailable(meter.WebhookBusy, "too many certificates of the provider are being fetched: deliver it again")
	}
	return l.slots.Give, nil
}

func (l *fetchLimits) take(client, url string, known bool, now time.Time) time.Duration {
	if known {
		return l.known.Take(now, url)
	}
	if wait := l.clients.Take(now, client); wait > 0 {
		return wait
	}
	return l.all.Take(now, "")
}
