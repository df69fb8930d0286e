package command

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// reportWait is longer than the API takes at most to read every movement of a sale.
const reportWait = 3 * time.Minute

func reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report <sale> [--out <file>]",
		Short: "Writes what happened in a sale into one HTML file",
		Long: `
Writes the report of a sale into one HTML file that needs no other: the curve of
its stock, how long it took to sell out, attempts by reason, times, holds that were
in doubt and how they ended, and whether stock, journal and ledger agree.

The movements are those of the journal and, where one is kept, of the ledger.
Attempts and times of reserves are those of the edge that is asked, since it
started. The report can be made while the sale goes on, and again afterwards.`,
		Example: `  $ caddy stockgate report double11
  $ caddy stockgate report double11 --out /srv/reports/double11.html`,
		RunE: action(writeReport, "sale"),
	}
	cmd.Flags().String("out", "", "File to write; - is the standard output (default: <sale>.html)")
	return cmd
}

func writeReport(c *call) error {
	name := c.text("out")
	if name != "" && c.flag("json") {
		return usageError{errors.New("--json prints what the API answers: leave --out out")}
	}
	if name == "" {
		name = c.args[0] + ".html"
	}
	c.wait = reportWait
	var answer adminapi.SaleReport
	if err := c.ask(http.MethodGet, "sales/"+segment(c.args[0])+"/report", nil, &answer); err != nil || c.flag("json") {
		return err
	}
	return c.saveReport(name, answer.HTML)
}

// saveReport writes a report to a file, whole or not at all; - is the standard output.
func (c *call) saveReport(name, html string) error {
	if name == "-" {
		_, err := fmt.Fprint(c.cmd.OutOrStdout(), html)
		return err
	}
	temp := fmt.Sprintf("%s.%d.part", name, os.Getpid())
	if err := os.WriteFile(temp, []byte(html), 0o644); err != nil {
		return fmt.Errorf("the file cannot be written: %w", err)
	}
	if err := os.Rename(temp, name); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	c.printf("wrote %s\n", name)
	return nil
}
