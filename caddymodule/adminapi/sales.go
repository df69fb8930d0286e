package adminapi

import (
	"time"

	"github.com/stockgate/stockgate/sale"
)

// SaleSummary is a sale in the list of all.
type SaleSummary struct {
	ID       string      `json:"id"`
	Status   sale.Status `json:"status"`
	StartsAt time.Time   `json:"starts_at,omitzero"`
	EndsAt   time.Time   `json:"ends_at,omitzero"`
	Balanced bool        `json:"balanced"`
}

// SaleList answers GET sales.
type SaleList struct {
	Sales []SaleSummary `json:"sales"`
}

// SaleStatus answers POST sales/{id}/open, pause and close.
type SaleStatus struct {
	ID     string      `json:"id"`
	Status sale.Status `json:"status"`
}

// SaleAligned answers POST sales/{id}/align: how far the sale's clock of deadlines was ahead
// of Redis's own time, and how many holds were moved.
type SaleAligned struct {
	ID     string `json:"id"`
	LeadMs int64  `json:"lead_ms"`
	Moved  int64  `json:"moved"`
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
}
