package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
)

func rebuildCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rebuild <sale> --from ledger [--dry-run] [--open] [--force]",
		Short: "Restores a sale that Redis has lost",
		Long: `
Restores a sale that Redis has lost, from the ledger: its file, its stock, its
reservations, what buyers have of their limits, keys, refs, returns and stock
changes. Tokens that were issued stay valid. The Caddy that is asked must have the
ledger.

The sale sells nothing while it runs. If it breaks off, run it again: it starts over.
Afterwards the sale is paused, if it was open: what never reached the ledger is
missing, and its units look available. It says what is known of that; compare the
sale with the shop's orders, then open it. With --open it sells at once.

A Redis that came back without its last writes still has the sale: pause it first.
What it has and the ledger has not is merged. If nothing is lost nothing is rebuilt,
except with --force.`,
		Example: `  $ caddy stockgate rebuild double11 --from ledger --dry-run
  $ caddy stockgate rebuild double11 --from ledger
  $ caddy stockgate sale open double11`,
		RunE: action(rebuildSale, "sale"),
	}
	cmd.Flags().String("from", "", "Where the sale is restored from: ledger")
	cmd.Flags().Bool("dry-run", false, "Only say what would be done")
	cmd.Flags().Bool("open", false, "Let the sale sell at once, if it was open")
	cmd.Flags().Bool("force", false, "Also a sale that is open in Redis, or of which nothing is lost")
	return cmd
}

func rebuildSale(c *call) error {
	if from := c.text("from"); from != "ledger" {
		return usageError{errors.New("a sale is rebuilt from the ledger only: say --from ledger")}
	}
	query := url.Values{"from": {"ledger"}}
	for _, flag := range []string{"dry-run", "open", "force"} {
		if c.flag(flag) {
			query.Set(strings.ReplaceAll(flag, "-", "_"), "1")
		}
	}
	c.wait = adminapi.RebuildTimeout
	var done recovery.Rebuilt
	stop := c.working("reading " + c.args[0] + " from the ledger")
	err := c.ask(http.MethodPost, "sales/"+segment(c.args[0])+"/rebuild?"+query.Encode(), nil, &done)
	stop()
	if err != nil {
		return err
	}
	would := "Rebuilt"
	if done.DryRun {
		would = "It would rebuild"
	}
	c.printf("%s %s: %s, %d cells, %d counters of limits, %d returns, %d stock changes.\n", would, done.Sale, reservationsText(&done), done.Cells, done.Limits, done.Returns, done.Adjustments)
	for _, note := range done.Notes {
		c.printf("%s\n", c.paint(terminal.Warn, note))
	}
	if !done.DryRun {
		c.printf("Sale %s is %s. It took %v.\n", done.Sale, done.Status, time.Duration(done.Milliseconds)*time.Millisecond)
	}
	return nil
}

// reservationsText counts the reservations by their state.
func reservationsText(done *recovery.Rebuilt) string {
	var parts []string
	all := 0
	for _, state := range slices.Sorted(maps.Keys(done.Reservations)) {
		parts = append(parts, fmt.Sprintf("%d %s", done.Reservations[state], state))
		all += done.Reservations[state]
	}
	return fmt.Sprintf("%d reservations (%s)", all, cmp.Or(strings.Join(parts, ", "), "none"))
}

func ledgerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ledger <command>", Short: "Shows how the ledger is kept"}
	group(cmd, &cobra.Command{
		Use: "schema <database>", Short: "Prints the statements that make the ledger's tables",
		Long: `
Prints the statements that make the ledger's tables, in the language of the
database: sqlite, postgres or mysql. Stockgate runs them itself if its role may. If
not, run them first with another role: Stockgate's then needs to select, insert,
update and delete only.`,
		Example: "  $ caddy stockgate ledger schema postgres | psql --single-transaction shop",
		RunE:    action(printSchema, "database"),
	})
	return cmd
}

func printSchema(c *call) error {
	info, err := caddy.GetModule(journals.LedgersNamespace + "." + c.args[0])
	if err != nil {
		return usageError{fmt.Errorf("there is no ledger %q in this Caddy: it has %s", c.args[0], strings.Join(journals.LedgerNames(), ", "))}
	}
	module, ok := info.New().(journals.LedgerModule)
	if !ok {
		return fmt.Errorf("%s is no ledger", info.ID)
	}
	for i, statements := range module.Schema() {
		if _, err := fmt.Fprintf(c.cmd.OutOrStdout(), "-- %d\n%s\n", i+1, strings.TrimSpace(statements)); err != nil {
			return err
		}
	}
	return nil
}
