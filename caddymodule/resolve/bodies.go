package resolve

import (
	"net/http"
	"sync"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
)

const (
	// maxReading is how many webhooks may be read at a time: until its signature is checked, the
	// body of each is what any client likes. maxReadingClient is how many of them may be of one
	// client: providers send bursts from few addresses, but the body of a webhook comes at once.
	maxReading, maxReadingClient = 256, 64
)

// bodyCounter counts the webhooks whose bodies are read. The zero value is ready.
type bodyCounter struct {
	mu       sync.Mutex
	all      int
	byClient map[string]int // those above 0, so that it has at most maxReading
}

// begin makes room for a body; a refusal: there is none. The caller must call end.
func (o *bodyCounter) begin(client string) *refusal {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.byClient[client] >= maxReadingClient:
		return &refusal{
			status: http.StatusTooManyRequests, counts: meter.WebhookLimited, retryAfter: int(bodyTimeout / time.Second),
			text: "too many webhooks of this address are being read: deliver it again",
		}
	case o.all >= maxReading:
		return unavailable(meter.WebhookBusy, "too many webhooks are being read: deliver it again")
	case o.byClient == nil:
		o.byClient = make(map[string]int)
	}
	o.all++
	o.byClient[client]++
	return nil
}

// end gives the room back.
func (o *bodyCounter) end(client string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all--
	if o.byClient[client]--; o.byClient[client] == 0 {
		delete(o.byClient, client)
	}
}
