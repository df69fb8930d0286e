package status

import (
	"net/http"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// isHealth tells whether a request asks for the health of the edge.
func isHealth(r *http.Request) bool {
	return r.URL.EscapedPath() == "/health" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// serveHealth answers a load balancer. What is wrong is said in words that are no help to an
// attacker: causes are in the log and at the admin API.
func (s *Status) serveHealth(w http.ResponseWriter, r *http.Request) error {
	orders := false
	switch query := r.URL.RawQuery; query {
	case "":
	case "for=orders":
		orders = true
	default:
		return answerStatus(w, http.StatusBadRequest, "no-store", statusError{"the only parameter is for=orders"})
	}
	known := s.app.Health()
	refunds := ""
	if len(known.RefundNeeded) > 0 {
		refunds = "orders are taken or paid for without stock: see `caddy stockgate health`"
	}
	h := publicHealth{Ready: known.Ready, Orders: adminapi.OrdersReady, Degraded: len(known.Degraded)+len(known.Bypassed) > 0, RefundNeeded: refunds}
	status := http.StatusOK
	if !known.Ready {
		h.Orders = "orders are answered with 503 at present"
		if orders {
			status = http.StatusServiceUnavailable
		}
	}
	return answerStatus(w, status, "no-store", h)
}

// publicHealth is what anyone may know.
type publicHealth struct {
	Ready    bool   `json:"ready"`
	Orders   string `json:"orders"`
	Degraded bool   `json:"degraded"`
	// RefundNeeded says neither how many orders nor of which sale.
	RefundNeeded string `json:"refund_needed,omitempty"`
}
