package edge

import (
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// Charges is what an attempt costs of the purchase limits.
func Charges(l *Listing, secret *identity.Secret, a *sale.Attempt, lines []sale.Line, now time.Time) ([]reservation.Charge, *sale.Refusal) {
	charged, _, no := charges(l, &person{secret: secret, attempt: a}, lines, now)
	return charged, no
}
