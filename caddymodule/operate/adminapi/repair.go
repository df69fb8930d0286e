package adminapi

import "time"

// RebuildTimeout bounds the rebuild of a sale: a million orders take minutes.
const RebuildTimeout = time.Hour

// ReconcileTimeout bounds one run that compares and repairs a sale.
const ReconcileTimeout = 10 * time.Minute

// MaxOrders bounds the orders of one request, whose names are kept in memory.
const MaxOrders = 1_000_000

// ReconcileRequest asks for POST sales/{id}/reconcile.
type ReconcileRequest struct {
	// Repair repairs the differences that can be repaired.
	Repair bool `json:"repair"`
	// Orders are the reservation ids or refs of all orders of the shop, AsOf is when they
	// were listed.
	Orders []string  `json:"orders,omitempty"`
	AsOf   time.Time `json:"as_of,omitzero"`
	// Units are the units that the shop has sold with an order of Orders, by SKU; those under an
	// empty SKU are of any items. An order without is compared by its name alone.
	Units map[string]map[string]int64 `json:"units,omitempty"`
	// TakeOver takes the units of orders without a reservation out of the stock, of a sale that is not open.
	TakeOver bool `json:"take_over,omitempty"`
	// Probe asks the shop with the probes of the gates.
	Probe bool `json:"probe,omitempty"`
}
