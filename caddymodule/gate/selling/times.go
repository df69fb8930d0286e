package selling

import (
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/store/record"
)

const (
	defaultHoldFor = 30 * time.Second
	leastHoldFor   = 3 * time.Second
	mostHoldFor    = 24 * time.Hour

	defaultIdempotencyTTL = 24 * time.Hour
	mostIdempotencyTTL    = 30 * 24 * time.Hour
)

// openTimes compiles how long stock is held, and how long the shop may take.
func (t *Terms) openTimes() error {
	hold := time.Duration(t.HoldFor)
	if hold == 0 {
		hold = defaultHoldFor
		if t.Mode() == record.ModeBackend {
			hold = backendHoldFor
		}
	}
	if hold < leastHoldFor || hold > mostHoldFor {
		return fmt.Errorf("hold_for %v is outside %v to %v", hold, leastHoldFor, mostHoldFor)
	}
	margin := time.Duration(t.setup.App.Token.Margin)
	if margin == 0 {
		margin = min(max(hold/5, time.Second), 5*time.Second)
	}
	if margin > hold-2*time.Second {
		return fmt.Errorf("hold_for %v leaves no time beside the token's margin of %v; hold at least 2s longer", hold, margin)
	}
	if t.ForwardTimeout < 0 || time.Duration(t.ForwardTimeout) > hold-margin {
		return fmt.Errorf("forward_timeout %v must be positive and end before the token, at most %v after the reservation (hold_for %v, margin %v)",
			time.Duration(t.ForwardTimeout), hold-margin, hold, margin)
	}
	t.MostAtShop = time.Duration(t.ForwardTimeout)
	if t.MostAtShop == 0 && t.Mode() == record.ModeBackend {
		t.MostAtShop = backendForwardTimeout
	}
	ttl := time.Duration(t.IdempotencyTTL)
	switch {
	case ttl < 0 || ttl > mostIdempotencyTTL:
		return fmt.Errorf("idempotency_ttl %v must be positive, and at most %v", ttl, mostIdempotencyTTL)
	case ttl == 0:
		ttl = defaultIdempotencyTTL
	}
	t.Hold = edge.HoldOptions{HoldFor: hold, Margin: margin, Mode: t.Mode(), KeyTTL: ttl, Gate: t.setup.Name}
	return nil
}
