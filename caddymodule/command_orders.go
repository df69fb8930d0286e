package caddymodule

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const (
	// ordersMost bounds a file of orders: as many names are kept in memory.
	ordersMost = 1_000_000
	// ordersBytes bounds its size.
	ordersBytes = 1 << 30
)

// orderColumns are the columns that are looked for in a header, the best first.
var orderColumns = []string{"reservation", "reservation_id", "id", "ref"}

// confirmFrom confirms what a file names. The whole file is read and checked first.
func confirmFrom(c *call, name string) error {
	in := io.Reader(os.Stdin)
	if name == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return usageError{err}
		}
		defer f.Close()
		in = f
	}
	names, err := readOrders(in, name, c.text("column"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s names no order", name)
	}
	var sum bulkAnswer
	for part := range slices.Chunk(names, bulkMost) {
		answer, err := c.bulk("confirm", &bulkRequest{Names: part, DryRun: c.flag("dry-run")})
		if err != nil {
			return sum.after(err)
		}
		sum.add(answer)
	}
	err = c.report("confirm", &sum)
	left := sum.InDoubt
	if sum.DryRun {
		left -= int64(sum.FromInDoubt)
	}
	c.printf("in doubt and not in the file: %d\n", max(left, 0))
	return err
}

// readOrders returns the names in a file, each once.
func readOrders(in io.Reader, file, column string) ([]string, error) {
	limited := &io.LimitedReader{R: in, N: ordersBytes + 1}
	buffered := bufio.NewReaderSize(limited, 64<<10)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = buffered.Discard(3)
	}
	rows := csv.NewReader(buffered)
	rows.ReuseRecord, rows.FieldsPerRecord, rows.TrimLeadingSpace = true, -1, true
	first, _ := buffered.Peek(4096) // as much as there is
	rows.Comma = separator(first)

	var names []string
	seen := make(map[string]struct{})
	at := -1 // the column; -1: no row yet
	for {
		row, err := rows.Read()
		if limited.N == 0 {
			return nil, fmt.Errorf("%s is larger than %d bytes: split it", file, ordersBytes)
		} else if errors.Is(err, io.EOF) {
			return names, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		line, _ := rows.FieldPos(0)
		if at < 0 {
			header := false
			if at, header, err = orderColumn(row, column); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			} else if header {
				continue
			}
		}
		name := ""
		if at < len(row) {
			name = strings.TrimSpace(row[at])
		}
		if name == "" {
			continue // an order that was not reserved has no id
		}
		if !plainWords.MatchString(name) {
			return nil, fmt.Errorf("%s:%d: %.40q is no reservation id or ref: 1 to 128 printable ASCII characters without space", file, line, name)
		}
		if _, twice := seen[name]; twice {
			continue
		}
		if len(names) == ordersMost {
			return nil, fmt.Errorf("%s names more than %d orders: split it", file, ordersMost)
		}
		seen[name] = struct{}{}
		names = append(names, name)
	}
}

// orderColumn finds the column, and whether the first row is a header. A single
// column without one is a bare list.
func orderColumn(first []string, wanted string) (at int, header bool, err error) {
	if wanted != "" {
		if at = indexFold(first, wanted); at >= 0 {
			return at, true, nil
		}
		return 0, false, usageError{fmt.Errorf("it has no column %q; the first line has %q", wanted, first)}
	}
	for _, name := range orderColumns {
		if at = indexFold(first, name); at >= 0 {
			return at, true, nil
		}
	}
	if len(first) == 1 {
		return 0, false, nil
	}
	return 0, false, usageError{fmt.Errorf("which column has the reservation ids or refs? Name it with --column; the first line has %q", first)}
}

func indexFold(row []string, name string) int {
	return slices.IndexFunc(row, func(field string) bool { return strings.EqualFold(strings.TrimSpace(field), name) })
}

// separator guesses from the first line what parts the columns: some spreadsheets
// write semicolons or tabs.
func separator(start []byte) rune {
	line, _, _ := bytes.Cut(start, []byte("\n"))
	for _, c := range ",;\t" {
		if bytes.ContainsRune(line, c) {
			return c
		}
	}
	return ','
}
