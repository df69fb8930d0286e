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
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
)

const (
	// ordersBytes bounds its size.
	ordersBytes = 1 << 30
	// ordersLine bounds a line of JSON.
	ordersLine = 1 << 20
)

// Columns that are looked for in a header, the best first: the order, its units and their item.
var (
	orderColumns    = []string{"reservation", "reservation_id", "id", "ref"}
	quantityColumns = []string{"quantity", "qty"}
	itemColumns     = []string{"sku"}
)

// orderColumnNames are the columns that an operator has named; empty: those above.
type orderColumnNames struct {
	order, quantity, item string
	namesOnly             bool // units are not read
}

// or returns the names that are looked for.
func or(named string, usual []string) []string {
	if named != "" {
		return []string{named}
	}
	return usual
}

// confirmFrom confirms what a file names. The whole file is read and checked first.
func confirmFrom(c *call, name string) error {
	list, err := c.openOrders(name, orderColumnNames{order: c.text("column"), namesOnly: true})
	if err != nil {
		return err
	}
	var sum adminapi.BulkAnswer
	for part := range slices.Chunk(list.names, adminapi.MaxBulk) {
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

// openOrders reads the orders in a file, - is the standard input. A file without any is an error.
func (c *call) openOrders(name string, columns orderColumnNames) (*orderList, error) {
	in, made := c.cmd.InOrStdin(), time.Now()
	if name == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, usageError{err}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			made = info.ModTime()
		}
		in = f
	}
	list, err := readOrders(in, name, columns)
	if err != nil {
		return nil, err
	}
	if list.made = made; len(list.names) == 0 {
		return nil, fmt.Errorf("%s names no order", name)
	}
	return list, nil
}

// readOrders reads a file: CSV, JSON lines or a bare list.
func readOrders(in io.Reader, file string, columns orderColumnNames) (*orderList, error) {
	limited := &io.LimitedReader{R: in, N: ordersBytes + 1}
	buffered := bufio.NewReaderSize(limited, 64<<10)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = buffered.Discard(3)
	}
	list := &orderList{file: file, seen: make(map[string]struct{})}
	read := list.readCSV
	if start, _ := buffered.Peek(4096); bytes.HasPrefix(bytes.TrimSpace(start), []byte("{")) {
		read = list.readJSON
	}
	err := read(buffered, columns)
	if limited.N == 0 {
		return nil, fmt.Errorf("%s is larger than %d bytes: split it", file, ordersBytes)
	}
	return list, err
}

// orderList collects the orders in a file.
type orderList struct {
	file  string
	made  time.Time // when the file was written
	names []string  // each once
	seen  map[string]struct{}
	// units are those of each order, by SKU; nil: the file has no column with them.
	units map[string]map[string]int64
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

// addUnits adds the units in a line of the file to those of its order. sku is empty where the file
// has no column with the item.
func (l *orderList) addUnits(name, quantity, sku string, line int) error {
	if name == "" {
		return nil
	}
	n, err := wholeUnits(quantity)
	if err != nil {
		return fmt.Errorf("%s:%d: %.40q is no number of units: a whole number from 0, or name another column with --quantity", l.file, line, quantity)
	}
	l.count(name, sku, n)
	return nil
}

// count adds units to an order.
func (l *orderList) count(name, sku string, n int64) {
	if l.units == nil {
		l.units = make(map[string]map[string]int64)
	}
	if l.units[name] == nil {
		l.units[name] = make(map[string]int64, 1)
	}
	l.units[name][sku] += n
}

var errUnits = errors.New("no number of units")

// wholeUnits reads a number of units. Some shops write 2 as 2.0000.
func wholeUnits(text string) (int64, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || n > sale.MaxUnits || strings.Trim(fraction, "0") != "" {
		return 0, errUnits
	}
	return n, nil
}

// readCSV reads rows: one for each order, or one for each item of an order.
func (l *orderList) readCSV(in *bufio.Reader, columns orderColumnNames) error {
	rows := csv.NewReader(in)
	rows.ReuseRecord, rows.FieldsPerRecord, rows.TrimLeadingSpace = true, -1, true
	first, _ := in.Peek(4096) // as much as there is
	rows.Comma = separator(first)
	var at orderPlaces
	for begun := false; ; {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", l.file, err)
		}
		line, _ := rows.FieldPos(0)
		if !begun {
			begun = true
			header := false
			if at, header, err = placesOf(row, columns); err != nil {
				return fmt.Errorf("%s: %w", l.file, err)
			} else if header {
				continue
			}
		}
		name := field(row, at.order)
		if err := l.add(name, line); err != nil {
			return err
		}
		if at.quantity < 0 || columns.namesOnly {
			continue
		}
		if err := l.addUnits(name, field(row, at.quantity), field(row, at.item), line); err != nil {
			return err
		}
	}
}

// field returns a field of a row, empty if the row has none.
func field(row []string, at int) string {
	if at < 0 || at >= len(row) {
		return ""
	}
	return strings.TrimSpace(row[at])
}

// readJSON reads JSON lines: an object for each order, or for each item of an order, with fields
// that are named like the columns of a CSV.
func (l *orderList) readJSON(in *bufio.Reader, columns orderColumnNames) error {
	wanted := or(columns.order, orderColumns)
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
		name, ok := member(order, wanted)
		if !ok {
			return usageError{fmt.Errorf("%s:%d: which field has the reservation id or ref? It has none of %q; name it with --column", l.file, line, wanted)}
		}
		if err := l.add(name, line); err != nil {
			return err
		}
		quantity, ok := member(order, or(columns.quantity, quantityColumns))
		if columns.namesOnly {
			continue
		} else if !ok {
			if columns.quantity != "" || l.units != nil {
				return fmt.Errorf("%s:%d: it has no quantity, as other lines or --quantity say", l.file, line)
			}
			continue
		}
		sku, _ := member(order, or(columns.item, itemColumns))
		if err := l.addUnits(name, quantity, sku, line); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", l.file, err)
	}
	return nil
}

// member returns the first of the wanted members of an object that it has, as text: empty for null.
func member(order map[string]json.RawMessage, wanted []string) (text string, ok bool) {
	i := slices.IndexFunc(wanted, func(name string) bool { _, ok := order[name]; return ok })
	if i < 0 {
		return "", false
	}
	raw := order[wanted[i]]
	if string(raw) == "null" {
		return "", true
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		text = string(raw) // a number
	}
	return strings.TrimSpace(text), true
}

// orderPlaces are the columns of a CSV; below 0: there is none.
type orderPlaces struct{ order, quantity, item int }

// placesOf finds the columns, and whether the first row is a header. A single column without one is
// a bare list.
func placesOf(first []string, columns orderColumnNames) (at orderPlaces, header bool, err error) {
	find := func(named string, usual []string, flag string) int {
		for _, name := range or(named, usual) {
			if i := indexFold(first, name); i >= 0 {
				return i
			}
		}
		if named != "" && err == nil {
			err = usageError{fmt.Errorf("it has no column %q, as --%s says; it begins with %q", named, flag, first)}
		}
		return -1
	}
	at = orderPlaces{find(columns.order, orderColumns, "column"), find(columns.quantity, quantityColumns, "quantity"), find(columns.item, itemColumns, "sku")}
	switch {
	case err != nil:
		return at, false, err
	case at.order >= 0:
		return at, true, nil
	case len(first) == 1:
		return orderPlaces{0, -1, -1}, false, nil
	}
	return at, false, usageError{fmt.Errorf("which column has the reservation ids or refs? Name it with --column; it begins with %q", first)}
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
