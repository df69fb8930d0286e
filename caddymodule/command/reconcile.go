package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
)

func reconcileCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reconcile <sale> [--repair] [--shop <file or database> [--query <sql>] [--column <name>] [--quantity <name>] [--sku <name>] [--take-over] | --probe]",
		Short: "Compares Redis with itself, the journal, the ledger and the shop",
		Long: `
Compares what Redis keeps of a sale (counters of stock and purchase limits, holds,
keys and refs, lists of deadlines) with its own reservations, with the journal, and
with the ledger where one is configured. It names each difference in a sentence, with
its cause and what a repair does. The sale may be on meanwhile: what changes while it
is looked at is no difference.

--repair sets what differs to what the ledger and the journal after it say. Each repair
is an entry of the journal. It may be broken off and repeated.

--shop also compares with the shop's orders: a CSV with a header that has a column
reservation, id or ref, or one that --column names; JSON lines with such a field; or a
bare list of reservation ids or refs; - is the standard input. It must have all orders
of the sale up to when the file was written. Where it has a column quantity or qty,
and sku for items, the units of each order are compared with its reservation; an order
may have several rows, whose units are added. --probe asks the shop itself, by the
probes of the gates, about what is in doubt and what changed last. With --repair what
is in doubt and in the shop is confirmed. Nothing is released or refunded by a guess.

With --query, --shop is the address of the shop's database, which this command asks:
postgres://, mysql:// or sqlite:/path, with {env.NAME} or {file./path} in place of the
password. The query gives a row for each order, or for each item of an order, with
columns that are named as in a CSV. It runs in a transaction that only reads.

--take-over, for orders that came past the gate, as in a bypass: the units of an order
of the file that has no reservation are out of the stock, with --repair, and the same
again changes nothing. The sale must be paused, and the file needs units. Where fewer
units are left, those are taken, and what is missing is named. These orders do not count
in purchase limits.

Exit status: 0 all agrees, or was repaired; 1 there are differences.`,
		Example: `  $ caddy stockgate reconcile double11
  $ caddy stockgate reconcile double11 --repair
  $ caddy stockgate reconcile double11 --shop orders.csv --column order_no
  $ caddy stockgate reconcile double11 --shop 'mysql://reader:{env.SHOP_PASSWORD}@db.example.com/shop' \
      --query "SELECT order_no AS ref, sku, qty FROM order_lines WHERE sale = 'double11'"`,
		RunE: action(reconcileSale, "sale"),
	}
	flags := cmd.Flags()
	flags.Bool("repair", false, "Put right what differs")
	flags.String("shop", "", "A file of the shop's orders, - is the standard input; with --query the address of a database")
	flags.String("query", "", "The query of the shop's orders")
	flags.Duration("timeout", 30*time.Second, "How long the query may take, 1s to 10m")
	flags.String("column", "", "The column of the file that has the reservation ids or refs")
	flags.String("quantity", "", "The column of the file that has the units (default: quantity or qty)")
	flags.String("sku", "", "The column of the file that has the item of the units (default: sku)")
	flags.Bool("take-over", false, "Take the units of orders without a reservation out of the stock")
	flags.Bool("probe", false, "Ask the shop by the probes of the gates")
	return cmd
}

func reconcileSale(c *call) error {
	ask := adminapi.ReconcileRequest{Repair: c.flag("repair"), Probe: c.flag("probe"), TakeOver: c.flag("take-over")}
	switch file := c.text("shop"); {
	case file == "" && ask.TakeOver:
		return usageError{errors.New("--take-over goes with --shop: a file of the shop's orders says what it has sold")}
	case file == "" && c.text("column")+c.text("quantity")+c.text("sku") != "":
		return usageError{errors.New("--column, --quantity and --sku go with --shop")}
	case file == "" && c.text("query") != "":
		return usageError{errors.New("--query goes with --shop: the address of the shop's database")}
	case file != "" && ask.Probe:
		return usageError{errors.New("--shop and --probe do not go together")}
	case file != "":
		list, err := c.shopOrders(file)
		if err != nil {
			return err
		}
		ask.Orders, ask.AsOf, ask.Units = list.Names, list.Made, list.Units
	}
	body, err := json.Marshal(&ask)
	if err != nil {
		return err
	}
	var report recovery.Report
	c.wait = adminapi.ReconcileTimeout + time.Minute
	done := c.working("comparing " + c.args[0] + " with its own records, the journal and the ledger")
	err = c.ask(http.MethodPost, "sales/"+segment(c.args[0])+"/reconcile", body, &report)
	done()
	if err != nil {
		return err
	}
	return c.reportDifferences(&report)
}

// shopOrders reads the shop's orders, from a file or from a database.
func (c *call) shopOrders(from string) (*adminapi.OrderList, error) {
	columns := adminapi.OrderColumns{Order: c.text("column"), Quantity: c.text("quantity"), Item: c.text("sku")}
	switch asks := c.text("query") != ""; {
	case asks:
		return c.askOrders(from, columns)
	case strings.Contains(from, "://") || strings.HasPrefix(from, "sqlite:"):
		return nil, usageError{errNeedsQuery}
	case c.cmd.Flags().Changed("timeout"):
		return nil, usageError{errors.New("--timeout goes with --query")}
	}
	return c.openOrders(from, columns)
}

// against says what Redis was compared with.
var against = map[string]string{
	recovery.AgainstLedger: "the ledger and the journal", recovery.AgainstJournal: "the journal", recovery.AgainstItself: "its own reservations",
}

// reportDifferences prints what was found; what is left is an error.
func (c *call) reportDifferences(r *recovery.Report) error {
	for _, d := range r.Differences {
		c.printf("%s\n", c.paint(terminal.Bad, d.Text))
		if d.Cause != "" {
			c.printf("  cause:  %s\n", d.Cause)
		}
		if d.Repaired {
			c.printf("  %s   %s\n", c.paint(terminal.Good, "done:"), d.Repair)
		} else {
			c.printf("  repair: %s\n", d.Repair)
		}
	}
	if more := r.Found - len(r.Differences); more > 0 {
		c.printf("and %d more\n", more)
	}
	for _, note := range r.Notes {
		c.printf("note: %s\n", note)
	}
	c.printf("redis was compared with %s up to entry %d: %d reservations, %d cells, %d counters of limits\n",
		against[r.Against], r.Seq, r.Reservations, r.Cells, r.Limits)
	if r.Found == 0 {
		c.printf("%s", c.paint(terminal.Good, "all agrees\n"))
		return nil
	}
	c.printf("differences: %d, repaired: %d\n", r.Found, r.Repaired)
	if r.Left > 0 {
		return fmt.Errorf("differences that are left: %d", r.Left)
	}
	return nil
}
