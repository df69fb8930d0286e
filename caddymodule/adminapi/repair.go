package adminapi

import "time"

// RebuildTimeout bounds how long a sale is rebuilt: a million orders take minutes.
const RebuildTimeout = time.Hour

// ReconcileTimeout bounds how long a sale is compared and repaired.
const ReconcileTimeout = 10 * time.Minute

// OrdersMost bounds the orders of one request: that many names are kept in memory.
const MaxOrders = 1_000_000

// ReconcileRequest asks for POST sales/{id}/reconcile.
type ReconcileRequest struct {
	// Repair puts right what can be put right.
	Repair bool `json:"repair"`
	// Orders are the reservation ids or refs of all orders of the shop, AsOf is when they
	// were listed.
	Orders []string  `json:"orders,omitempty"`
	AsOf   time.Time `json:"as_of,omitzero"`
	// Probe asks the shop by the probes of the gates.
	Probe bool `json:"probe,omitempty"`
}
