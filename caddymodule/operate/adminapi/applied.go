package adminapi

import "github.com/stockgate/stockgate/internal/store/reservation"

// AppliedSale is the answer to a sale that was applied.
type AppliedSale struct {
	*reservation.Applied
	// Surprises are what the change does to a sale that is open, and what its operator may not mean.
	Surprises []string `json:"surprises,omitempty"`
}
