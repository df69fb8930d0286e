package sitetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
)

// Redis starts a redis-server, and returns it with an app that uses it with a long timeout.
func Redis(t *testing.T) (*redistest.Server, map[string]any) {
	t.Helper()
	server := redistest.Start(t)
	return server, map[string]any{"redis": map[string]any{"addresses": []string{server.Addr()}, "timeout": "1m"}}
}

// SaleFile has items for most cases.
const SaleFile = `
id: double11
starts_at: 2020-11-11T00:00:00+08:00
ends_at: 2090-11-12T00:00:00+08:00
items:
  - {sku: plain, stock: 100}
  - {sku: few, stock: 3}
  - {sku: two, regions: {beijing: 40, shanghai: 60}}
  - {sku: "a/b%c?d#e", stock: 5}
  - {sku: "..", stock: 7}
`

// SaleStock is a sale in the API's answer.
type SaleStock struct {
	ID, Status string
	StartsAt   time.Time `json:"starts_at"`
	EndsAt     time.Time `json:"ends_at"`
	Timezone   string
	Limits     []sale.Limit
	Version    int64
	Items      []record.Cell
	Bundles    []reservation.BundleStock
	Balanced   bool
	Oldest     time.Time `json:"oldest_in_doubt"`
	Unbacked   int64
	AtRisk     int64 `json:"units_at_risk"`
	AtRiskMs   int64 `json:"at_risk_ms"`
	Shadow     []reservation.ShadowCell
	Restored   time.Time             `json:"restored_from"`
	Accepted   time.Time             `json:"loss_accepted"`
	Bypassed   time.Time             `json:"bypassed"`
	Bypasses   []string              `json:"bypasses"`
	MovedIn    *adminapi.SaleMovedIn `json:"moved_in"`
	Mirror     *adminapi.SaleMirror
	Queue      *adminapi.QueueState
	Scheduled  []reservation.ScheduledAct
	Performed  []reservation.ScheduledAct
	Waitlist   *adminapi.WaitlistState
}

// Cell is sku, region: stock available held in_doubt confirmed.
func (b SaleStock) Cell(sku, region string) string {
	for _, c := range b.Items {
		if c.SKU == sku && c.Region == region {
			return fmt.Sprint(c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed)
		}
	}
	return "none"
}

// OpenSale applies and opens SaleFile.
func (s *Site) OpenSale() {
	s.T.Helper()
	Do[any](s, "PUT", "/stockgate/sales/double11", SaleFile)
	Do[any](s, "POST", "/stockgate/sales/double11/open", "")
}
