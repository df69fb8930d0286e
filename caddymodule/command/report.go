package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// reportWait is longer than the API takes at most to read every movement of a sale.
const reportWait = 3 * time.Minute

func reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report <sale> [--out <file>] [--csv <file>]",
		Short: "Writes what happened in a sale into one HTML file",
		Long: `
Writes the report of a sale into one HTML file that needs no other: the curve of
its stock, how long it and each item took to sell out, who opened and paused it and
changed its stock, attempts by reason, times, holds that were in doubt and how they
ended, and whether stock, journal and ledger agree.

With --csv it also writes a file with all items: stock, available, held, in_doubt,
sold, returned, first_sale and last_sale (orders, in UTC), and seconds_to_sell_out,
from the first unit that a buyer took to the last one; empty: not sold out, or not
known because movements are missing. Where people have waited, also entered, offers,
offers_accepted, offers_lapsed and left. A SKU that a spreadsheet could take for a
formula has an apostrophe before it.

The movements are those of the journal and, where one is kept, of the ledger.
Attempts and times of reserves are those of the edge that is asked, since it
started. The report can be made while the sale goes on, and again afterwards.`,
		Example: `  $ caddy stockgate report double11
  $ caddy stockgate report double11 --csv double11.csv
  $ caddy stockgate report double11 --out /srv/reports/double11.html`,
		RunE: action(writeReport, "sale"),
	}
	cmd.Flags().String("out", "", "File to write; - is the standard output (default: <sale>.html)")
	cmd.Flags().String("csv", "", "File for the items as CSV; - is the standard output (default: none)")
	return cmd
}

func writeReport(c *call) error {
	name, csv := c.text("out"), c.text("csv")
	switch {
	case (name != "" || csv != "") && c.flag("json"):
		return usageError{errors.New("--json prints what the API answers: leave --out and --csv out")}
	case strings.EqualFold(filepath.Ext(name), ".csv"):
		return usageError{fmt.Errorf("--out %s: the report is HTML; --csv %s writes its items as CSV", name, name)}
	case name == "-" && csv == "-":
		return usageError{errors.New("only one of --out and --csv can be the standard output")}
	}
	name = cmp.Or(name, c.args[0]+".html")
	if name == csv {
		return usageError{fmt.Errorf("--out and --csv are the same file, %s", name)}
	}
	c.wait = reportWait
	var answer adminapi.SaleReport
	if err := c.ask(http.MethodGet, "sales/"+segment(c.args[0])+"/report", nil, &answer); err != nil || c.flag("json") {
		return err
	}
	say := c.cmd.OutOrStdout()
	if csv == "-" {
		say = c.cmd.ErrOrStderr()
	}
	if err := c.saveReport(name, answer.HTML, say); err != nil || csv == "" {
		return err
	}
	return c.saveReport(csv, answer.CSV, say)
}

// saveReport writes a report to a file, whole or not at all, and says so; - is the standard output.
func (c *call) saveReport(name, text string, say io.Writer) error {
	if name == "-" {
		_, err := fmt.Fprint(c.cmd.OutOrStdout(), text)
		return err
	}
	temp := fmt.Sprintf("%s.%d.part", name, os.Getpid())
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		return fmt.Errorf("the file cannot be written: %w", err)
	}
	if err := os.Rename(temp, name); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	_, err := fmt.Fprintf(say, "wrote %s\n", name)
	return err
}
