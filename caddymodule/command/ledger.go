package command

import (
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/app"
)

func ledgerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ledger <command>", Short: "Shows how the ledger is kept"}
	group(cmd, &cobra.Command{
		Use: "schema <database>", Short: "Prints the statements that make the ledger's tables",
		Long: `
Prints the statements that make the ledger's tables, in the language of the
database: sqlite or postgres. Stockgate runs them itself if its role may. If not, run
them first with another role: Stockgate's then needs to select, insert, update and
delete only.`,
		Example: "  $ caddy stockgate ledger schema postgres | psql --single-transaction shop",
		RunE:    action(printSchema, "database"),
	})
	return cmd
}

func printSchema(c *call) error {
	info, err := caddy.GetModule(app.LedgersNamespace + "." + c.args[0])
	if err != nil {
		return usageError{fmt.Errorf("there is no ledger %q in this Caddy: it has %s", c.args[0], strings.Join(app.LedgerNames(), " and "))}
	}
	module, ok := info.New().(app.LedgerModule)
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
