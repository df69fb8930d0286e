package command

import (
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/adminapi"
	"github.com/stockgate/stockgate/sale"
)

func deleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete <sale> [--force] [--yes]", Short: "Deletes a closed sale from Redis",
		Long: `
Deletes a closed sale from Redis: its stock, reservations, limits, idempotency keys
and journal. Its items are ordinary ones again, which 'other_items pass' lets pass;
returns of its orders are no longer possible. What the ledger has stays there.

It is refused while a hold is open or an order has no stock, and, without --force,
while the ledger or the outbox's receiver lacks some of the journal. A deleted sale
does not count as lost.`,
		Example: "  $ caddy stockgate sale export double11 double11.csv\n  $ caddy stockgate sale delete double11",
		RunE:    action(deleteSale, "sale"),
	}
	cmd.Flags().Bool("force", false, "Even if the ledger does not have the whole journal")
	cmd.Flags().BoolP("yes", "y", false, "Do not ask")
	return cmd
}

func purgeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "purge --ended <time> [--dry-run] [--yes]", Short: "Deletes all sales that were closed and ended long ago",
		Long: `
Deletes, as 'sale delete' does, every closed sale whose window ended at least --ended
ago. A sale that cannot be deleted stays, and the reason is printed.`,
		Example: "  $ caddy stockgate sale purge --ended 720h --dry-run\n  $ caddy stockgate sale purge --ended 720h",
		RunE:    action(purgeSales),
	}
	cmd.Flags().Duration("ended", 0, "How long ago their window ended, such as 720h")
	cmd.Flags().Bool("dry-run", false, "Only say which")
	cmd.Flags().BoolP("yes", "y", false, "Do not ask")
	return cmd
}

func deleteSale(c *call) error {
	id := c.args[0]
	if !c.flag("yes") && c.onTerminal() {
		if err := c.agreed(id, "Deleting "+id+" is for good: its reservations and its journal go with it."); err != nil {
			return err
		}
	}
	query := ""
	if c.flag("force") {
		query = "?force=1"
	}
	var deleted adminapi.SaleDeleted
	if err := c.ask(http.MethodDelete, "sales/"+segment(id)+query, nil, &deleted); err != nil {
		return err
	}
	c.printf("%s is deleted\n", deleted.ID)
	return nil
}

func purgeSales(c *call) error {
	ended, err := c.cmd.Flags().GetDuration("ended")
	if err != nil {
		panic(err) // the command does not declare its flag
	}
	if ended <= 0 {
		return usageError{errors.New("--ended says how long ago the sales ended, such as 720h")}
	}
	var list adminapi.SaleList
	if _, err := c.fetch(http.MethodGet, "sales", nil, &list); err != nil {
		return err
	}
	var old []string
	for _, s := range list.Sales {
		if s.Status == sale.Closed && time.Since(s.EndsAt) >= ended {
			old = append(old, s.ID)
		}
	}
	if c.flag("dry-run") || len(old) == 0 {
		for _, id := range old {
			c.printf("%s would be deleted\n", id)
		}
		c.printf("%s; nothing was changed\n", plural(len(old), "sale"))
		return nil
	}
	if !c.flag("yes") && c.onTerminal() {
		if err := c.agreed("yes", "Deleting "+plural(len(old), "sale")+" is for good: their reservations and journals go with them."); err != nil {
			return err
		}
	}
	return c.purge(old)
}

// purge deletes these sales. It goes on after a refusal, and ends with the last error.
func (c *call) purge(old []string) (failed error) {
	for _, id := range old {
		var deleted adminapi.SaleDeleted
		if err := c.ask(http.MethodDelete, "sales/"+segment(id), nil, &deleted); err != nil {
			c.printf("%s stays: %v\n", id, err)
			failed = err
			continue
		}
		c.printf("%s is deleted\n", id)
	}
	return failed
}
