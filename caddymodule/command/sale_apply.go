package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

func applyFile(c *call) error {
	name := c.args[0]
	file, err := c.readFile(name)
	if err != nil {
		return usageError{err}
	}
	asked := false
	move := &moving{c: c}
	defer move.close()
	next, err := sale.ParseFrom(file, sale.Sources{
		Query: func(f sale.StockFrom) (*sale.Table, error) {
			asked = true
			return askStock(c.cmd.Context(), f)
		},
		Keys: move.ask,
		Items: func(items string) ([]byte, error) {
			asked = true
			return c.readItems(name, items)
		},
	}) // it names the lines of this file; Caddy checks it again
	if err != nil {
		if problems, ok := errors.AsType[sale.Problems](err); ok && len(problems) > 1 {
			return fmt.Errorf("%s has %d mistakes:\n%w", name, len(problems), err)
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	move.report(next)
	if asked || next.MovedIn != nil { // Caddy gets numbers, and nothing else of the shop's databases or of other files
		if file, err = json.Marshal(next); err != nil {
			return err
		}
	}
	query := url.Values{}
	for _, flag := range []string{"dry-run", "force", "new"} {
		if c.flag(flag) {
			query.Set(strings.ReplaceAll(flag, "-", "_"), "1")
		}
	}
	path := "sales/" + segment(next.ID) + "?" + query.Encode()
	if err := c.agreeToSurprises(next.ID, query, file); err != nil {
		return err
	}
	applied := adminapi.AppliedSale{Applied: new(reservation.Applied)}
	if move.pending(next) && !c.flag("dry-run") {
		if _, err := c.fetch(http.MethodPut, path, file, &applied); err != nil {
			return err
		}
		applied.Warnings = nil // the last answer has them
		c.printApplied(&applied)
		if file, err = move.enter(next); err != nil {
			return err
		}
		applied = adminapi.AppliedSale{Applied: new(reservation.Applied)}
	}
	raw, err := c.fetch(http.MethodPut, path, file, &applied)
	if c.flag("json") {
		_, _ = c.cmd.OutOrStdout().Write(raw)
	}
	if err != nil {
		c.printRefused(raw)
		return err
	}
	c.printApplied(&applied)
	return nil
}

// printRefused prints what a dry run would have changed that is refused.
func (c *call) printRefused(raw []byte) {
	var refused struct {
		Changes []string `json:"changes"`
	}
	if json.Unmarshal(raw, &refused) != nil || len(refused.Changes) == 0 {
		return
	}
	for _, change := range refused.Changes {
		c.printf("%s\n", change)
	}
	c.printf("dry run: nothing was changed, and this change would be refused\n")
}

// agreeToSurprises asks before a change of an open sale that its operator may not mean: on a terminal; elsewhere
// it needs --yes.
func (c *call) agreeToSurprises(id string, query url.Values, file []byte) error {
	if c.flag("dry-run") || c.flag("yes") {
		return nil
	}
	trial := maps.Clone(query)
	trial.Set("dry_run", "1")
	would := adminapi.AppliedSale{Applied: new(reservation.Applied)}
	if _, err := c.fetch(http.MethodPut, "sales/"+segment(id)+"?"+trial.Encode(), file, &would); err != nil || len(would.Surprises) == 0 {
		return err
	}
	what := id + " is open, and with this file " + strings.Join(would.Surprises, "; ") + "."
	if !c.onTerminal() {
		return usageError{errors.New(what + " Nothing was changed: give --yes if you mean it")}
	}
	return c.agreed(id, what)
}

// printApplied prints what an apply has changed.
func (c *call) printApplied(applied *adminapi.AppliedSale) {
	for _, change := range applied.Changes {
		c.printf("%s\n", change)
	}
	for _, warning := range slices.Concat(applied.Surprises, applied.Warnings) {
		c.printf("warning: %s\n", warning)
	}
	if applied.DryRun {
		c.printf("dry run: nothing was changed\n")
	}
}

// readItems reads the file that has the items of a sale file: its name is relative to that file.
func (c *call) readItems(file, items string) ([]byte, error) {
	if file != "-" && !filepath.IsAbs(items) {
		items = filepath.Join(filepath.Dir(file), items)
	}
	return c.readFile(items)
}

// readFile reads a sale file; - is the standard input.
func (c *call) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(c.cmd.InOrStdin(), sale.MaxFile+1))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, sale.MaxFile+1))
}
