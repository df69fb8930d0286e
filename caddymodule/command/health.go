package command

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func healthCommand() *cobra.Command {
	return &cobra.Command{
		Use: "health", Short: "Reports whether this edge sells; for containers",
		Long: `
Reports whether this edge sells, and what it works without. It does not wait for Redis, so
it may run every few seconds: HEALTHCHECK CMD ["caddy", "stockgate", "health"].

Exit status: 0 it sells; 3 it does not, or Caddy does not answer.`,
		Example: "  $ caddy stockgate health\n  $ caddy stockgate health --json",
		RunE:    action(showHealth),
	}
}

func showHealth(c *call) error {
	r, err := c.request(http.MethodGet, "health", nil)
	if err != nil {
		return err
	}
	var h adminapi.Health
	if r.status != http.StatusServiceUnavailable || json.Unmarshal(r.raw, &h) != nil || h.Orders == "" {
		err = r.read(http.MethodGet, &h)
	}
	if c.flag("json") {
		_, _ = c.cmd.OutOrStdout().Write(r.raw)
	}
	if err != nil {
		return err
	}
	c.printf("orders: %s\n", h.Orders)
	for _, sentence := range h.Bypassed {
		c.printf("bypassed: %s\n", sentence)
	}
	for _, part := range h.Degraded {
		c.printf("degraded: %s\n", part)
	}
	for _, refunds := range h.RefundNeeded {
		c.printf("refund needed: %s\n", refunds)
	}
	if !h.Ready {
		return noAnswerError{errors.New("this edge does not sell")}
	}
	return nil
}
