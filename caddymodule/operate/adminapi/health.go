package adminapi

// OrdersReady is the word of Health.Orders where the edge sells.
const OrdersReady = "ready"

// Health answers GET health, and GET /health of stockgate_status.
type Health struct {
	// Ready reports whether this edge may sell, or lets orders pass in a bypass.
	Ready bool `json:"ready"`
	// Orders is ready, bypassed, or why orders are answered with 503.
	Orders string `json:"orders"`
	// Lost are the sales that Redis has lost: their attempts are answered with 503.
	Lost []string `json:"lost,omitempty"`
	// Degraded has a sentence for each part that this edge works without.
	Degraded []string `json:"degraded,omitempty"`
	// Bypassed has a sentence for each bypass, of all edges.
	Bypassed []string `json:"bypassed,omitempty"`
	// RefundNeeded has a sentence for each sale with orders that were taken or paid for without
	// stock, as far as this edge has read.
	RefundNeeded []string `json:"refund_needed,omitempty"`
}
