package resolve_test

import (
	"fmt"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/caddymodule/resolve"
)

// The bodies of one client are bounded, and so are those of all.
func TestBodies(t *testing.T) {
	var b resolve.Bodies
	for i := range 256 {
		client := fmt.Sprint("client ", i/64)
		if status, _ := b.Begin(client); status != 0 {
			t.Fatalf("body %d is refused: %d", i, status)
		}
		if i%64 == 63 && i < 255 {
			if status, counts := b.Begin(client); status != 429 || counts != meter.WebhookLimited {
				t.Errorf("one more of %s gives %d, and counts as %d", client, status, counts)
			}
		}
	}
	if status, counts := b.Begin("another"); status != 503 || counts != meter.WebhookBusy {
		t.Errorf("one more of all gives %d, and counts as %d", status, counts)
	}
	b.End("client 3")
	if status, _ := b.Begin("another"); status != 0 {
		t.Errorf("there is room, and one more gives %d", status)
	}
}
