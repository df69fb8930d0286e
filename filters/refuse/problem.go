// Package refuse writes refusals as HTTP responses: problem documents, or bodies and headers
// that the operator configures.
package refuse

import "github.com/stockgate/stockgate/internal/sale"

// TypeOf returns the type of a reason's problem documents.
func TypeOf(reason sale.Reason) string { return problemType + string(reason) }

// ProblemDocument is the body of a refusal, a problem document (RFC 9457).
type ProblemDocument struct {
	Type       string      `json:"type"`
	Title      string      `json:"title"`
	Status     int         `json:"status"`
	Detail     string      `json:"detail,omitempty"`
	Reason     sale.Reason `json:"reason"`
	RetryAfter int64       `json:"retry_after,omitempty"`
	SKU        string      `json:"sku,omitempty"`
	Limit      *sale.Limit `json:"limit,omitempty"`
	// Reservation is the id of the reservation that the buyer already has.
	Reservation string `json:"reservation,omitempty"`
	// Challenge is the task that the client must solve.
	Challenge string `json:"challenge,omitempty"`
	// Waitlist is the path at which the client may enter the waiting list, for not_your_turn.
	Waitlist string `json:"waitlist,omitempty"`
}
