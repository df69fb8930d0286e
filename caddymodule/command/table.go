package command

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
)

// table is aligned columns on stdout; with --json it prints nothing.
type table struct {
	call *call
	text bytes.Buffer
	out  *tabwriter.Writer // into text; nil: it prints nothing
	rows int
}

func (c *call) table(columns ...string) *table {
	if c.flag("json") {
		return new(table)
	}
	t := &table{call: c, rows: -1}
	t.out = tabwriter.NewWriter(&t.text, 0, 8, 2, ' ', 0)
	t.row(columns...)
	return t
}

func (t *table) row(cells ...string) {
	if t.out == nil {
		return
	}
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t.out, strings.Join(cells, "\t"))
	t.rows++
}

// print writes the table; one without rows says so.
func (t *table) print() error {
	if t.out == nil {
		return nil
	}
	if t.rows == 0 {
		fmt.Fprintln(t.out, "(none)")
	}
	if err := t.out.Flush(); err != nil {
		return err
	}
	head, rest, _ := strings.Cut(t.text.String(), "\n") // painted cells would not align
	t.call.printf("%s\n%s", t.call.paint(terminal.Strong, head), rest)
	return nil
}

// onTerminal tells whether a person can be asked: standard input is a terminal.
func (c *call) onTerminal() bool { return terminal.Is(c.cmd.InOrStdin()) }

// forPerson tells whether standard output is a terminal: only there output has a form that
// programs do not read.
func (c *call) forPerson() bool { return terminal.Is(c.cmd.OutOrStdout()) }

// paint returns a text for standard output in a style, if that shows colour.
func (c *call) paint(style terminal.Style, text string) string {
	return terminal.Paint(c.cmd.OutOrStdout(), style, text)
}

// working says what goes on while the command waits, on standard error if that is a terminal,
// until the function that it returns is called.
func (c *call) working(what string) (done func()) {
	return terminal.Show(c.cmd.ErrOrStderr(), func() string { return what }).Done
}
