package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
)

// closeSale closes a sale, says what stays held, and writes its tally if the command has
// --export. On a terminal it asks first: a closed sale cannot be opened again.
func closeSale(c *call) error {
	id := c.args[0]
	if !c.flag("yes") && c.onTerminal() {
		open, err := c.stays(id)
		if err != nil {
			return err
		}
		if err := c.agreed(id, "Closing "+id+" is for good: it cannot be opened again."+open); err != nil {
			return err
		}
	}
	if c.cmd.Flags().Changed("export") {
		return c.closeAndExport()
	}
	if err := changeStatus("close")(c); err != nil {
		return err
	}
	if err := c.dropQueue(c.cmd.OutOrStdout()); err != nil || c.flag("json") {
		return err
	}
	open, err := c.stays(id)
	if err != nil {
		return fmt.Errorf("it is closed, and what stays held cannot be read: %w", err)
	}
	c.printf("%s", strings.TrimPrefix(open+"\n", "\n"))
	return nil
}

func (c *call) closeAndExport() error {
	e, err := c.beginExport(c.text("export"))
	if err != nil {
		return err
	}
	var s adminapi.SaleStatus
	raw, err := c.fetch(http.MethodPost, "sales/"+segment(c.args[0])+"/close", nil, &s)
	if err != nil {
		e.giveUp()
		if c.flag("json") {
			_, _ = c.cmd.OutOrStdout().Write(raw)
		}
		return err
	}
	fmt.Fprintf(e.words(c), "%s is %s\n", s.ID, s.Status)
	if err := c.dropQueue(e.words(c)); err != nil {
		e.giveUp()
		return err
	}
	return c.export(e)
}

// dropQueue releases, with --drop-queue, what waits in the line of a sale that was closed.
func (c *call) dropQueue(say io.Writer) error {
	if !c.flag("drop-queue") {
		return nil
	}
	id := c.args[0]
	var q adminapi.QueueState
	_, err := c.fetch(http.MethodGet, queuePath(id), nil, &q)
	var d *adminapi.QueueDrained
	if err == nil {
		d, err = c.drain(q)
	}
	if err != nil {
		return fmt.Errorf("it is closed, and not all orders that wait are released, 'caddy stockgate queue drain %s' goes on: %w", id, err)
	}
	if !c.flag("json") {
		fmt.Fprintf(say, "%s\n", drained(d))
	}
	return nil
}

// stays says, in lines that begin with a line feed, what of a sale is not decided yet.
func (c *call) stays(id string) (string, error) {
	var b adminapi.SaleShown
	if _, err := c.fetch(http.MethodGet, "sales/"+segment(id), nil, &b); err != nil {
		return "", err
	}
	var held, doubt int64
	for _, cell := range b.Items {
		held += cell.Held
		doubt += cell.InDoubt
	}
	var lines strings.Builder
	if held > 0 {
		fmt.Fprintf(&lines, "\n  %d units stay held: they are sold, or free again, by their deadline", held)
	}
	if c.flag("drop-queue") && b.Queue != nil && b.Queue.Waiting > 0 {
		fmt.Fprintf(&lines, "\n  %s for the shop: they are released, and their buyers are told that they have not ordered", waiting(b.Queue))
	} else {
		lines.WriteString(lineGoesOn(b.Queue))
	}
	if doubt > 0 {
		fmt.Fprintf(&lines, "\n  %d units stay in doubt until they are resolved: 'caddy stockgate holds %s' lists them", doubt, id)
	}
	if b.Unbacked > 0 {
		fmt.Fprintf(&lines, "\n  %d orders have no stock: 'caddy stockgate holds %s --state unbacked' lists them", b.Unbacked, id)
	}
	return lines.String(), nil
}

// agreed asks on the terminal, and returns an error unless the answer is word.
func (c *call) agreed(word, question string) error {
	fmt.Fprintf(c.cmd.ErrOrStderr(), "%s\nType %s to go on: ", question, word)
	line, _ := bufio.NewReader(c.cmd.InOrStdin()).ReadString('\n')
	if strings.TrimSpace(line) != word {
		return errors.New("not confirmed: nothing was changed")
	}
	return nil
}

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
		Use: "purge --ended <time> [--dry-run] [--yes]", Short: "Deletes all closed sales that ended long ago",
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
