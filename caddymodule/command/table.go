package command

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

// table is aligned columns on stdout; with --json it prints nothing.
type table struct {
	out  *tabwriter.Writer
	rows int
}

func (c *call) table(columns ...string) *table {
	if c.flag("json") {
		return new(table)
	}
	t := &table{out: tabwriter.NewWriter(c.cmd.OutOrStdout(), 0, 8, 2, ' ', 0), rows: -1}
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
	return t.out.Flush()
}

// onTerminal tells whether a person can be asked: standard input is a terminal.
func (c *call) onTerminal() bool { return isTerminal(c.cmd.InOrStdin()) }

// forPerson tells whether standard output is a terminal: only there output has colour, or a
// form that programs do not read.
func (c *call) forPerson() bool { return isTerminal(c.cmd.OutOrStdout()) }

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
