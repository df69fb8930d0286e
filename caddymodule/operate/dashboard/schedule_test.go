package dashboard_test

import (
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// The page shows what is scheduled of the sale, and by whom.
func TestScheduled(t *testing.T) {
	s, _ := open(t)
	next := listen(t, s, "/ops/events?sale=double11")
	sitetest.Do[adminapi.ActPlanned](s, "POST", "/stockgate/sales/double11/schedule", `{"at":"2088-06-01T12:00:00Z","act":"stock","sku":"few","change":"=7"}`)
	n := until(t, next, "an act is there", func(n news) bool { return len(n.Sale.Acts) > 0 })
	if a := n.Sale.Acts[0]; len(n.Sale.Acts) != 1 || a.Number != 1 || a.What != "stock of few =7" || a.Who == "" || a.Done != "" {
		t.Errorf("the page has %+v", n.Sale.Acts)
	}
	sitetest.Do[adminapi.ActCancelled](s, "DELETE", "/stockgate/sales/double11/schedule/1", "")
	until(t, next, "it is taken back", func(n news) bool { return len(n.Sale.Acts) == 0 })
}
