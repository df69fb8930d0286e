package adminapi

import (
	"encoding/json"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

// SaleSummary is a sale in the list of all.
type SaleSummary struct {
	ID       string      `json:"id"`
	Status   sale.Status `json:"status"`
	StartsAt time.Time   `json:"starts_at,omitzero"`
	EndsAt   time.Time   `json:"ends_at,omitzero"`
	Timezone string      `json:"timezone,omitempty"`
	Balanced bool        `json:"balanced"`
}

// SaleList answers GET sales.
type SaleList struct {
	Sales []SaleSummary `json:"sales"`
}

// SaleShown answers GET sales/{id}.
type SaleShown struct {
	reservation.SaleStock
	// UnitsAtRisk were sold, and neither every replica nor the ledger has them yet, as far as
	// this edge knows.
	UnitsAtRisk int64 `json:"units_at_risk"`
	// AtRiskMs is how long the oldest of them has been at risk, in ms.
	AtRiskMs int64 `json:"at_risk_ms,omitempty"`
	// Shadow is what the shop sold of each cell while a gate was in shadow, and no cell of Redis
	// counts it.
	Shadow []reservation.ShadowCell `json:"shadow,omitempty"`
	// MovedIn is what the sale has taken over; nil: nothing.
	MovedIn *SaleMovedIn `json:"moved_in,omitempty"`
	// Queue is the line of its orders that wait for the shop; nil: it has none.
	Queue *QueueState `json:"queue,omitempty"`
	// Waitlist is its waiting list; nil: it has none.
	Waitlist *WaitlistState `json:"waitlist,omitempty"`
	// Bypasses has a sentence for each bypass of a gate that sells it.
	Bypasses []string `json:"bypasses,omitempty"`
	// Mirror says how the shop's own Redis follows; nil: no edge has mirrored the sale.
	Mirror *SaleMirror `json:"mirror,omitempty"`
}

// SaleFile answers GET sales/{id}/file: the file as it was applied last, with its defaults. Its numbers of units are those
// that the file loads.
type SaleFile struct {
	ID   string          `json:"id"`
	File json.RawMessage `json:"file"`
}

// SaleStatus answers POST sales/{id}/open, pause and close.
type SaleStatus struct {
	ID     string      `json:"id"`
	Status sale.Status `json:"status"`
	// Warnings say what is likely to be a mistake, although it was done.
	Warnings []string `json:"warnings,omitempty"`
}

// SaleDeleted answers DELETE sales/{id}.
type SaleDeleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// ShadowForgotten answers POST sales/{id}/forget_shadow.
type ShadowForgotten struct {
	ID        string `json:"id"`
	Forgotten bool   `json:"forgotten"`
}

// SaleAligned answers POST sales/{id}/align: how far the sale's clock of deadlines was ahead
// of Redis's own time, and how many holds were moved.
type SaleAligned struct {
	ID     string `json:"id"`
	LeadMs int64  `json:"lead_ms"`
	Moved  int64  `json:"moved"`
}

// SaleUnfenced answers POST sales/{id}/unfence.
type SaleUnfenced struct {
	ID string `json:"id"`
	// WasFenced says that the sale was fenced and is sold again. If it was not, nothing has
	// changed.
	WasFenced bool `json:"was_fenced"`
}

// StockChange asks for POST sales/{id}/items/{sku}/stock.
type StockChange struct {
	// ID makes the change happen once: the same id again gives the same answer.
	ID     string `json:"id"`
	Delta  int64  `json:"delta"`
	Region string `json:"region,omitempty"`
}

// StockChanged answers a StockChange: Stock is what the cell has after the change.
type StockChanged struct {
	ID     string `json:"id"`
	SKU    string `json:"sku"`
	Region string `json:"region,omitempty"`
	Delta  int64  `json:"delta"`
	Stock  int64  `json:"stock"`
	// Warnings say what is likely to be a mistake, although it was done.
	Warnings []string `json:"warnings,omitempty"`
}
