package command

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/adminapi"
	"github.com/stockgate/stockgate/sale"
)

const (
	// ordersBytes bounds its size.
	ordersBytes = 1 << 30
	// ordersLine bounds a line of JSON.
	ordersLine = 1 << 20
)

// orderColumns are the columns that are looked for in a header, the best first.
var orderColumns = []string{"reservation", "reservation_id", "id", "ref"}

// confirmFrom confirms what a file names. The whole file is read and checked first.
func confirmFrom(c *call, name string) error {
	names, _, err := c.openOrders(name, c.text("column"))
	if err != nil {
		return err
	}
	var sum adminapi.BulkAnswer
	for part := range slices.Chunk(names, adminapi.MaxBulk) {
		answer, err := c.bulk("confirm", &adminapi.BulkRequest{Names: part, DryRun: c.flag("dry-run")})
		if err != nil {
			return unlessDone(&sum, err)
		}
		addUp(&sum, answer)
	}
	err = c.report("confirm", &sum)
	left := sum.InDoubt
	if sum.DryRun {
		left -= int64(sum.FromInDoubt)
	}
	c.printf("in doubt and not in the file: %d\n", max(left, 0))
	return err
}

// openOrders reads the names in a file, - is the standard input, and when it was made.
// One without any is an error.
func (c *call) openOrders(name, column string) (names []string, made time.Time, err error) {
	in, made := c.cmd.InOrStdin(), time.Now()
	if name == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, made, usageError{err}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			made = info.ModTime()
		}
		in = f
	}
	if names, err = readOrders(in, name, column); err == nil && len(names) == 0 {
		err = fmt.Errorf("%s names no order", name)
	}
	return names, made, err
}

// readOrders returns the names in a file, each once.
func readOrders(in io.Reader, file, column string) ([]string, error) {
	limited := &io.LimitedReader{R: in, N: ordersBytes + 1}
	buffered := bufio.NewReaderSize(limited, 64<<10)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = buffered.Discard(3)
	}
	list := orderList{file: file, seen: make(map[string]struct{})}
	if start, _ := buffered.Peek(4096); bytes.HasPrefix(bytes.TrimSpace(start), []byte("{")) {
		if err := list.readJSON(buffered, column); limited.N > 0 && err != nil {
			return nil, err
		}
		if limited.N == 0 {
			return nil, fmt.Errorf("%s is larger than %d bytes: split it", file, ordersBytes)
		}
		return list.names, nil
	}
	rows := csv.NewReader(buffered)
	rows.ReuseRecord, rows.FieldsPerRecord, rows.TrimLeadingSpace = true, -1, true
	first, _ := buffered.Peek(4096) // as much as there is
	rows.Comma = separator(first)

	at := -1 // the column; -1: no row yet
	for {
		row, err := rows.Read()
		if limited.N == 0 {
			return nil, fmt.Errorf("%s is larger than %d bytes: split it", file, ordersBytes)
		} else if errors.Is(err, io.EOF) {
			return list.names, nil
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
		if err := list.add(name, line); err != nil {
			return nil, err
		}
	}
}

// orderList collects the names in a file, each once.
type orderList struct {
	file  string
	names []string
	seen  map[string]struct{}
}

// add takes the name in a line of the file; an order that was not reserved has none.
func (l *orderList) add(name string, line int) error {
	if name == "" {
		return nil
	}
	if !sale.IsName(name) {
		return fmt.Errorf("%s:%d: %.40q is no reservation id or ref: 1 to 128 printable ASCII characters without space", l.file, line, name)
	}
	if _, twice := l.seen[name]; twice {
		return nil
	}
	if len(l.names) == adminapi.MaxOrders {
		return fmt.Errorf("%s names more than %d orders: split it", l.file, adminapi.MaxOrders)
	}
	l.seen[name] = struct{}{}
	l.names = append(l.names, name)
	return nil
}

// readJSON reads JSON lines: an object for each order, with a field that is named like
// the columns of a CSV.
func (l *orderList) readJSON(in *bufio.Reader, column string) error {
	wanted := orderColumns
	if column != "" {
		wanted = []string{column}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, ordersLine)
	for line := 1; lines.Scan(); line++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var order map[string]json.RawMessage
		if err := json.Unmarshal(text, &order); err != nil {
			return fmt.Errorf("%s:%d: it is no JSON object: %w", l.file, line, err)
		}
		i := slices.IndexFunc(wanted, func(name string) bool { _, ok := order[name]; return ok })
		if i < 0 {
			return usageError{fmt.Errorf("%s:%d: which field has the reservation id or ref? It has none of %q; name it with --column", l.file, line, wanted)}
		}
		var name string
		if raw := order[wanted[i]]; string(raw) != "null" {
			if err := json.Unmarshal(raw, &name); err != nil {
				name = string(raw) // a number
			}
		}
		if err := l.add(strings.TrimSpace(name), line); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", l.file, err)
	}
	return nil
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
