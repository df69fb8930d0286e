package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

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
			return askStock(f)
		},
		Keys: move.ask,
	}) // it names the lines of this file; Caddy checks it again
	if err != nil {
		if problems, ok := errors.AsType[sale.Problems](err); ok && len(problems) > 1 {
			return fmt.Errorf("%s has %d mistakes:\n%w", name, len(problems), err)
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	move.report(next)
	if asked || next.MovedIn != nil { // Caddy gets numbers, and nothing else of the shop's databases
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
	var applied reservation.Applied
	if move.pending(next) && !c.flag("dry-run") {
		if _, err := c.fetch(http.MethodPut, path, file, &applied); err != nil {
			return err
		}
		applied.Warnings = nil // the last answer has them
		c.printApplied(&applied)
		if file, err = move.enter(next); err != nil {
			return err
		}
		applied = reservation.Applied{}
	}
	if err := c.ask(http.MethodPut, path, file, &applied); err != nil {
		return err
	}
	c.printApplied(&applied)
	return nil
}

// printApplied prints what an apply has changed.
func (c *call) printApplied(applied *reservation.Applied) {
	for _, change := range applied.Changes {
		c.printf("%s\n", change)
	}
	for _, warning := range applied.Warnings {
		c.printf("warning: %s\n", warning)
	}
	if applied.DryRun {
		c.printf("dry run: nothing was changed\n")
	}
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
