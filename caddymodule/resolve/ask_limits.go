package resolve

import (
	"net/http"
	"sync"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/filters"
)

// A webhook that is not signed costs a question before it is known whether it is the provider's. These bound the
// questions, so that forged ids neither use up the provider's quota nor keep its webhooks waiting.
const (
	// askAtOnce is how many questions may be under way.
	askAtOnce = 16
	// One client may ask askBurst at once, and askRate in a second.
	askRate, askBurst = 10, 100
	// All clients of which the provider has known no payment yet may ask this often together.
	strangersRate, strangersBurst = 10, 50
	// maxProven is how many clients are remembered of which it has known one.
	maxProven = 1024
)

// askLimits bounds what a provider is asked.
type askLimits struct {
	slots     *filters.Slots
	clients   *filters.RateTable
	strangers *filters.RateTable

	mu     sync.Mutex
	proven map[string]bool
}

func newAskLimits() *askLimits {
	return &askLimits{
		slots:     filters.NewSlots(askAtOnce),
		clients:   filters.NewRateTable(filters.Rate{Events: askRate, Window: time.Second, Burst: askBurst, Keys: badClient}),
		strangers: filters.NewRateTable(filters.Rate{Events: strangersRate, Window: time.Second, Burst: strangersBurst, Keys: 1}),
		proven:    make(map[string]bool),
	}
}

// begin makes room for a question of a client; the caller must call done.
func (l *askLimits) begin(client string, now time.Time) (done func(), no *refusal) {
	wait := l.clients.Take(now, client)
	if wait == 0 && !l.isProven(client) {
		wait = l.strangers.Take(now, "")
	}
	if wait > 0 {
		return nil, &refusal{
			status: http.StatusTooManyRequests, counts: meter.WebhookLimited, retryAfter: int(wait/time.Second) + 1,
			text: "too many webhooks about which the provider must be asked: deliver it again",
		}
	}
	if !l.slots.Take() {
		return nil, unavailable(meter.WebhookBusy, "the provider is being asked about too many webhooks: deliver it again")
	}
	return l.slots.Give, nil
}

func (l *askLimits) isProven(client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.proven[client]
}

// prove remembers a client that named a payment that the provider knows. Where there is no room, any
// other is forgotten.
func (l *askLimits) prove(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.proven[client] && len(l.proven) >= maxProven {
		for other := range l.proven {
			delete(l.proven, other)
			break
		}
	}
	l.proven[client] = true
}
