package resolve

import "github.com/stockgate/stockgate/caddymodule/internal/meter"

// Bodies are webhooks that are read.
type Bodies struct{ bodyCounter }

// Begin returns the status of the refusal and how it counts; 0: there is room.
func (b *Bodies) Begin(client string) (int, meter.WebhookResult) {
	if no := b.begin(client); no != nil {
		return no.status, no.counts
	}
	return 0, 0
}

func (b *Bodies) End(client string) { b.end(client) }
