package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor [--older <time>]", Short: "Looks at everything that a sale depends on",
		Long: `
Looks at everything that a sale depends on, as the running Caddy sees it: Redis (its
version, memory, persistence, replicas and clock), the signing key, the ledger and
how far it is behind, the stock of every sale, holds in doubt, the gates and what
stands before them. Each finding is ok, a warning or an error, and says in a
sentence what to do. Nothing is changed.

With --config the file is adapted too, and what Stockgate warns about in it is a
finding. Run it on every edge: each sees what it sees.

Exit status: 0 no errors, though there may be warnings; 1 errors; 2 the command
line is wrong; 3 Caddy does not answer.`,
		Example: "  $ caddy stockgate doctor --config /etc/caddy/Caddyfile\n  $ caddy stockgate doctor --older 1h --json",
		RunE:    action(examine),
	}
	cmd.Flags().String("older", "", "Warn of holds that are in doubt for longer. Default: 10m")
	return cmd
}

func examine(c *call) error {
	var d diagnosis
	var seen adminapi.Diagnosis
	if file := c.text("config"); file != "" {
		d.examineConfig(file, c.text("adapter"))
	}
	query := ""
	if older := c.text("older"); older != "" {
		query = "?older=" + url.QueryEscape(older)
	}
	done := c.working("asking Redis, the ledger and the gates")
	_, err := c.fetch(http.MethodGet, "doctor"+query, nil, &seen)
	done()
	if err != nil {
		if d.Errors > 0 && !c.flag("json") { // they may be why
			c.printDiagnosis(&d.Diagnosis)
		}
		return err
	}
	d.Add(adminapi.LevelOK, "caddy", "Caddy answers at its admin endpoint, and runs stockgate")
	d.add(&seen)
	if c.flag("json") {
		out, err := json.Marshal(d.Diagnosis)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.cmd.OutOrStdout(), "%s\n", out)
	} else {
		c.printDiagnosis(&d.Diagnosis)
	}
	if d.Errors > 0 {
		return errors.New(plural(d.Errors, "error") + " and " + plural(d.Warnings, "warning"))
	}
	return nil
}

// levelStyles are how the levels of findings look.
var levelStyles = map[string]terminal.Style{adminapi.LevelOK: terminal.Good, adminapi.LevelWarning: terminal.Warn, adminapi.LevelError: terminal.Bad}

func (c *call) printDiagnosis(d *adminapi.Diagnosis) {
	for _, f := range d.Findings {
		c.printf("%s  %-13s  %s\n", c.paint(levelStyles[f.Level], fmt.Sprintf("%-7s", f.Level)), f.Check, f.Text)
	}
	if d.Errors == 0 {
		c.printf("no errors, %s\n", plural(d.Warnings, "warning"))
	}
}

func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// diagnosis has the findings about a file and about an edge.
type diagnosis struct {
	adminapi.Diagnosis
	inFile []string // the warnings about the file, each until the edge has it too
}

// add takes in what an edge has found. A warning about the file is not repeated; it stands for one of the edge, which
// may run more gates than the file has.
func (d *diagnosis) add(seen *adminapi.Diagnosis) {
	for _, f := range seen.Findings {
		at := -1
		if f.Level == adminapi.LevelWarning {
			at = slices.IndexFunc(d.inFile, func(text string) bool { return strings.HasSuffix(f.Text, text) })
		}
		if at >= 0 {
			d.inFile = slices.Delete(d.inFile, at, at+1)
			continue
		}
		d.Add(f.Level, f.Check, "%s", f.Text)
	}
}

// examineConfig adapts a file, as `caddy adapt` does.
func (d *diagnosis) examineConfig(file, adapter string) {
	_, warnings, err := adapted(file, adapter)
	if err != nil {
		d.Add(adminapi.LevelError, "config", "%v", err)
		return
	}
	d.Add(adminapi.LevelOK, "config", "%s can be adapted", file)
	for _, w := range warnings {
		if strings.HasPrefix(w.Directive, "stockgate") {
			d.Add(adminapi.LevelWarning, "config", "%s:%d: %s", w.File, w.Line, w.Message)
			d.inFile = append(d.inFile, w.Message)
		}
	}
}
