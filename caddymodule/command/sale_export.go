package command

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/store/reservation"
)

const exportHelp = `
The tally of a sale has for each item and region: stock, available, held, in_doubt,
confirmed, and beside them what was returned after it had been confirmed, and what
was adjusted: added or taken by 'stock add', or returned and not put back on sale.
stock is available + held + in_doubt + confirmed; stock - adjusted is what the sale
file loaded.

The file's name says how it is written, .csv or .json; - is the standard output, as
CSV, or with --json as JSON. It is written whole or not at all.

It says whether it is final: the sale is closed and none of its holds is open. A
closed sale sells nothing new, but what buyers had begun goes on: holds end at
their deadline, and an operator, the shop or a probe resolves those in doubt. Write
the file again then, with 'sale export'.`

// exporting is a file that is being written. It gets its name when it is complete.
type exporting struct {
	name string
	as   string   // .csv or .json
	temp *os.File // nil: it goes to the standard output
}

// beginExport makes sure that a file can be written, before the command changes anything.
func (c *call) beginExport(name string) (*exporting, error) {
	e := &exporting{name: name, as: strings.ToLower(filepath.Ext(name))}
	switch {
	case name == "-" && c.flag("json"):
		e.as = ".json"
		return e, nil
	case name == "-":
		e.as = ".csv"
		return e, nil
	case e.as != ".csv" && e.as != ".json":
		return nil, usageError{fmt.Errorf("%s: the name must end in .csv or .json, which says how the file is written; - is the standard output", name)}
	}
	temp, err := os.OpenFile(fmt.Sprintf("%s.%d.part", name, os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, usageError{fmt.Errorf("the file cannot be written: %w", err)}
	}
	e.temp = temp
	return e, nil
}

// giveUp removes the temporary file.
func (e *exporting) giveUp() {
	if e.temp != nil {
		e.temp.Close()
		os.Remove(e.temp.Name())
	}
}

// words returns the writer for messages: the standard output, unless the tally goes there.
func (e *exporting) words(c *call) io.Writer {
	switch {
	case c.flag("json"):
		return io.Discard
	case e.temp == nil:
		return c.cmd.ErrOrStderr()
	}
	return c.cmd.OutOrStdout()
}

// write writes the file and gives it its name.
func (e *exporting) write(c *call, t *reservation.Tally, raw []byte) error {
	content := raw
	if e.as == ".csv" {
		content = tallyCSV(t)
	}
	if e.temp == nil {
		_, err := c.cmd.OutOrStdout().Write(content)
		return err
	}
	_, err := io.Copy(e.temp, bytes.NewReader(content))
	if err == nil {
		err = e.temp.Sync()
	}
	if err = errors.Join(err, e.temp.Close()); err == nil {
		err = os.Rename(e.temp.Name(), e.name)
	}
	if err != nil {
		os.Remove(e.temp.Name())
		return fmt.Errorf("the tally could not be written, `caddy stockgate sale export` does it again: %w", err)
	}
	return nil
}

func tallyCSV(t *reservation.Tally) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"sale", "status", "final", "at", "sku", "region", "stock", "available", "held", "in_doubt", "confirmed", "returned", "adjusted"})
	final := "no"
	if t.Final {
		final = "yes"
	}
	for _, c := range t.Items {
		_ = w.Write([]string{
			t.ID, string(t.Status), final, t.At.UTC().Format(time.RFC3339), c.SKU, c.Region, decimal(c.Stock), decimal(c.Available), decimal(c.Held),
			decimal(c.InDoubt), decimal(c.Confirmed), decimal(c.Returned), decimal(c.Adjusted),
		})
	}
	w.Flush() // a buffer takes everything
	return b.Bytes()
}

func exportSale(c *call) error {
	e, err := c.beginExport(c.args[1])
	if err != nil {
		return err
	}
	return c.export(e)
}

// export asks for the tally of the sale and writes it.
func (c *call) export(e *exporting) error {
	var t reservation.Tally
	raw, err := c.fetch(http.MethodGet, "sales/"+segment(c.args[0])+"/tally", nil, &t)
	if err == nil {
		err = e.write(c, &t, raw)
	} else {
		e.giveUp()
	}
	if c.flag("json") && (err != nil || e.temp != nil) {
		_, _ = c.cmd.OutOrStdout().Write(raw)
	}
	if err != nil {
		return err
	}
	say := e.words(c)
	if e.temp != nil {
		fmt.Fprintf(say, "%s has the tally of %s\n", e.name, t.ID)
	}
	for _, line := range openEnds(&t) {
		fmt.Fprintln(say, line)
	}
	return nil
}

// openEnds says what keeps a tally from being final, and how to end it.
func openEnds(t *reservation.Tally) (lines []string) {
	if !t.Balanced {
		lines = append(lines, "THE BOOKS DO NOT BALANCE: stock is not available + held + in doubt + confirmed")
	}
	if t.Final {
		return append(lines, "it is final")
	}
	sum := t.Sum()
	lines = append(lines, "it is NOT final:")
	if t.Status != "closed" {
		lines = append(lines, fmt.Sprintf("  the sale is %s: close it with 'caddy stockgate sale close %s'", t.Status, t.ID))
	}
	if sum.Held > 0 {
		lines = append(lines, fmt.Sprintf("  %d units are held: the last hold ends by itself at %s", sum.Held, adminapi.LocalTime(t.HeldUntil)))
	}
	if sum.InDoubt > 0 {
		lines = append(lines, fmt.Sprintf("  %d units are in doubt: 'caddy stockgate holds %s' lists them; --confirm-from and --release resolve them", sum.InDoubt, t.ID))
	}
	if t.Unbacked > 0 {
		lines = append(lines, fmt.Sprintf("  %d orders have no stock: 'caddy stockgate holds %s --state unbacked' lists them", t.Unbacked, t.ID))
	}
	return append(lines, fmt.Sprintf("then write it again with 'caddy stockgate sale export %s FILE'", t.ID))
}
