// Package refuse writes refusals as HTTP.
package refuse

import "github.com/stockgate/stockgate/sale"

// Problem is the body of a refusal, a problem document (RFC 9457).
type Problem struct {
	Type       string      `json:"type"`
	Title      string      `json:"title"`
	Status     int         `json:"status"`
	Detail     string      `json:"detail,omitempty"`
	Reason     sale.Reason `json:"reason"`
	RetryAfter int64       `json:"retry_after,omitempty"`
	SKU        string      `json:"sku,omitempty"`
	Limit      *sale.Limit `json:"limit,omitempty"`
	// Reservation is the one that the buyer has already.
	Reservation string `json:"reservation,omitempty"`
	// Challenge is the task to solve.
	Challenge string `json:"challenge,omitempty"`
}
