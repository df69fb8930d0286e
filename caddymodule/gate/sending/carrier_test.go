package sending

import (
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/gate/selling"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// A token says in full seconds when it expires, and no order is sent with one that has expired.
func TestTimeToForward(t *testing.T) {
	created := time.Date(2026, 11, 11, 12, 0, 0, 700e6, time.UTC)
	hold := reservation.Hold{Created: created, Exp: created.Add(3200 * time.Millisecond)} // the token expires at 12:00:03
	now := time.Now()
	c := &Carrier{Terms: new(selling.Terms)}
	if left := c.TimeToForward(&hold, now.Add(-2300*time.Millisecond)); left > 0 {
		t.Errorf("when the token has expired the shop still has %v", left)
	}
	if left := c.TimeToForward(&hold, now.Add(time.Hour)); left <= 0 || left > time.Hour+2300*time.Millisecond {
		t.Errorf("the shop has %v", left)
	}
}
