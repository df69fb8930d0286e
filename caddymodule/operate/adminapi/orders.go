package adminapi

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
)

const (
	// OrdersBytes bounds a file of orders.
	OrdersBytes = 1 << 30
	// ordersLine bounds a line of JSON.
	ordersLine = 1 << 20
)

// MaxFileText bounds the text of OrderFile in bytes.
const MaxFileText = 2 << 20

// OrderFile asks for POST sales/{id}/holds/names: the text of a file of orders, in the forms that the command
// `holds --confirm-from` reads.
type OrderFile struct {
	// Name is the file's, for errors.
	Name string `json:"name"`
	Text string `json:"text"`
	// Column has the reservation ids or refs; empty: one of the usual names.
	Column string `json:"column"`
}

// OrderNames answers it: the reservation ids and refs in the file, each once. Nothing is changed.
type OrderNames struct {
	Names []string `json:"names"`
}

// Columns that are looked for in a header, the best first: the order, its units and their item.
var (
	orderColumns    = []string{"reservation", "reservation_id", "id", "ref"}
	QuantityColumns = []string{"quantity", "qty"}
	ItemColumns     = []string{"sku"}
)

// OrderColumns are the columns that an operator has named; empty: those above.
type OrderColumns struct {
	Order, Quantity, Item string
	NamesOnly             bool // units are not read
}

// ColumnNames returns the names that are looked for.
func ColumnNames(named string, usual []string) []string {
	if named != "" {
		return []string{named}
	}
	return usual
}

// ColumnError says that a file of orders does not have a column that is needed, or that an operator has named.
type ColumnError struct{ error }

// ReadOrders reads a file: CSV, JSON lines or a bare list.
func ReadOrders(in io.Reader, file string, columns OrderColumns) (*OrderList, error) {
	limited := &io.LimitedReader{R: in, N: OrdersBytes + 1}
	buffered := bufio.NewReaderSize(limited, 64<<10)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = buffered.Discard(3)
	}
	list := &OrderList{File: file}
	read := list.readCSV
	if start, _ := buffered.Peek(4096); bytes.HasPrefix(bytes.TrimSpace(start), []byte("{")) {
		read = list.readJSON
	}
	err := read(buffered, columns)
	if limited.N == 0 {
		return nil, fmt.Errorf("%s is larger than %d bytes: split it", file, OrdersBytes)
	}
	return list, err
}

// OrderList collects the orders in a file.
type OrderList struct {
	File  string
	Made  time.Time // when the file was written
	Names []string  // each once
	seen  map[string]struct{}
	// Units are those of each order, by SKU; nil: the file has no column with them.
	Units map[string]map[string]int64
}

// Add takes the name in a line of the file; an order that was not reserved has none.
func (l *OrderList) Add(name string, line int) error {
	if name == "" {
		return nil
	}
	if !sale.IsName(name) {
		return fmt.Errorf("%s:%d: %.40q is no reservation id or ref: 1 to 128 printable ASCII characters without space", l.File, line, name)
	}
	if _, twice := l.seen[name]; twice {
		return nil
	}
	if len(l.Names) == MaxOrders {
		return fmt.Errorf("%s names more than %d orders: split it", l.File, MaxOrders)
	}
	if l.seen == nil {
		l.seen = make(map[string]struct{})
	}
	l.seen[name] = struct{}{}
	l.Names = append(l.Names, name)
	return nil
}

// AddUnits adds the units in a line of the file to those of its order. sku is empty where the file
// has no column with the item.
func (l *OrderList) AddUnits(name, quantity, sku string, line int) error {
	if name == "" {
		return nil
	}
	n, err := WholeUnits(quantity)
	if err != nil {
		return fmt.Errorf("%s:%d: %.40q is no number of units: a whole number from 0, or name another column with --quantity", l.File, line, quantity)
	}
	l.Count(name, sku, n)
	return nil
}

// Count adds units to an order.
func (l *OrderList) Count(name, sku string, n int64) {
	if l.Units == nil {
		l.Units = make(map[string]map[string]int64)
	}
	if l.Units[name] == nil {
		l.Units[name] = make(map[string]int64, 1)
	}
	l.Units[name][sku] += n
}

var errUnits = errors.New("no number of units")

// WholeUnits reads a number of units. Some shops write 2 as 2.0000.
func WholeUnits(text string) (int64, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || n > sale.MaxUnits || strings.Trim(fraction, "0") != "" {
		return 0, errUnits
	}
	return n, nil
}

// readCSV reads rows: one for each order, or one for each item of an order.
func (l *OrderList) readCSV(in *bufio.Reader, columns OrderColumns) error {
	rows := csv.NewReader(in)
	rows.ReuseRecord, rows.FieldsPerRecord, rows.TrimLeadingSpace = true, -1, true
	first, _ := in.Peek(4096) // as much as there is
	rows.Comma = Separator(first)
	var at OrderPlaces
	for begun := false; ; {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", l.File, err)
		}
		line, _ := rows.FieldPos(0)
		if !begun {
			begun = true
			header := false
			if at, header, err = OrderPlacesOf(row, columns); err != nil {
				return fmt.Errorf("%s: %w", l.File, err)
			} else if header {
				continue
			}
		}
		name := Field(row, at.Order)
		if err := l.Add(name, line); err != nil {
			return err
		}
		if at.Quantity < 0 || columns.NamesOnly {
			continue
		}
		if err := l.AddUnits(name, Field(row, at.Quantity), Field(row, at.Item), line); err != nil {
			return err
		}
	}
}

// Field returns a field of a row, empty if the row has none.
func Field(row []string, at int) string {
	if at < 0 || at >= len(row) {
		return ""
	}
	return strings.TrimSpace(row[at])
}

// readJSON reads JSON lines: an object for each order, or for each item of an order, with fields
// that are named like the columns of a CSV.
func (l *OrderList) readJSON(in *bufio.Reader, columns OrderColumns) error {
	wanted := ColumnNames(columns.Order, orderColumns)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, ordersLine)
	for line := 1; lines.Scan(); line++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var order map[string]json.RawMessage
		if err := json.Unmarshal(text, &order); err != nil {
			return fmt.Errorf("%s:%d: it is no JSON object: %w", l.File, line, err)
		}
		name, ok := member(order, wanted)
		if !ok {
			return &ColumnError{fmt.Errorf("%s:%d: which field has the reservation id or ref? It has none of %q; name it with --column", l.File, line, wanted)}
		}
		if err := l.Add(name, line); err != nil {
			return err
		}
		quantity, ok := member(order, ColumnNames(columns.Quantity, QuantityColumns))
		if columns.NamesOnly {
			continue
		} else if !ok {
			if columns.Quantity != "" || l.Units != nil {
				return fmt.Errorf("%s:%d: it has no quantity, as other lines or --quantity say", l.File, line)
			}
			continue
		}
		sku, _ := member(order, ColumnNames(columns.Item, ItemColumns))
		if err := l.AddUnits(name, quantity, sku, line); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", l.File, err)
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

// OrderPlaces are the columns of a CSV; below 0: there is none.
type OrderPlaces struct{ Order, Quantity, Item int }

// OrderPlacesOf finds the columns, and whether the first row is a header. A single column without one is
// a bare list.
func OrderPlacesOf(first []string, columns OrderColumns) (at OrderPlaces, header bool, err error) {
	find := func(named string, usual []string, flag string) int {
		for _, name := range ColumnNames(named, usual) {
			if i := IndexFold(first, name); i >= 0 {
				return i
			}
		}
		if named != "" && err == nil {
			err = &ColumnError{fmt.Errorf("it has no column %q, as --%s says; it begins with %q", named, flag, first)}
		}
		return -1
	}
	at = OrderPlaces{find(columns.Order, orderColumns, "column"), find(columns.Quantity, QuantityColumns, "quantity"), find(columns.Item, ItemColumns, "sku")}
	switch {
	case err != nil:
		return at, false, err
	case at.Order >= 0:
		return at, true, nil
	case len(first) == 1:
		return OrderPlaces{0, -1, -1}, false, nil
	}
	return at, false, &ColumnError{fmt.Errorf("which column has the reservation ids or refs? Name it with --column; it begins with %q", first)}
}

func IndexFold(row []string, name string) int {
	return slices.IndexFunc(row, func(field string) bool { return strings.EqualFold(strings.TrimSpace(field), name) })
}

// Separator guesses from the first line what parts the columns: some spreadsheets
// write semicolons or tabs.
func Separator(start []byte) rune {
	line, _, _ := bytes.Cut(start, []byte("\n"))
	for _, c := range ",;\t" {
		if bytes.ContainsRune(line, c) {
			return c
		}
	}
	return ','
}
