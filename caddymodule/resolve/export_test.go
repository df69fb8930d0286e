package resolve

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
)

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

// Dial makes connections to issuers.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// RealDialIssuer is the one that is used outside tests.
var RealDialIssuer Dial = dialIssuer

// DialIssuer makes configurations that are loaded from now on connect to issuers in another way.
func DialIssuer(t *testing.T, by Dial) {
	before := dialIssuer
	dialIssuer = by
	t.Cleanup(func() { dialIssuer = before })
}

// FetchWithin makes fetches of certificates end earlier.
func FetchWithin(t *testing.T, d time.Duration) {
	before := fetchTimeout
	fetchTimeout = d
	t.Cleanup(func() { fetchTimeout = before })
}
