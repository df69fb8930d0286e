package reservation

import (
	"time"

	"github.com/stockgate/stockgate/sale"
)

// Charges is what an attempt costs of the purchase limits.
func Charges(l *Listing, secret *Secret, a *sale.Attempt, lines []sale.Line, now time.Time) ([]Charge, *sale.Refusal) {
	return charges(l, &person{secret: secret, attempt: a}, lines, now)
}
