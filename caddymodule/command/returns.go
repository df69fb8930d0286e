package command

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
)

// returnLines bounds the lines of one return, as an order has them.
const returnLines = 50

// Columns of a file of returns. There is no id: it may be the order's or the return's.
var (
	returnedOrderColumns = []string{"reservation", "reservation_id", "ref", "order"}
	returnColumns        = []string{"return", "return_id"}
	regionColumns        = []string{"region"}
)

func returnsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "returns <sale> <csv> [--column <name>] [--no-restock] [--dry-run]",
		Short: "Takes units of many orders back",
		Long: `
Takes units of sold orders back, as a CSV file says (- is the standard input). The
first line names its columns:

	reservation, ref or order  the reservation's id or the shop's ref of the order,
	                           or the column that --column names
	sku, quantity              the units; without a SKU, all that is left of the order
	region                     where the order has the item in several
	return                     the id of the return: rows of one order with the same
	                           id are one return. Default: one return for each order
	                           and item

The whole file is checked before anything comes back. The same file again returns
nothing twice, and so does one that was interrupted. A second return of an item of
the same order needs a return id, so that it is not taken for the first.

The units go on sale again, and the buyers' purchase limits are given back; with
--no-restock they leave the stock. --dry-run says what would happen. Exit status 1:
some rows were not returned; they are listed with their lines.`,
		Example: `  $ caddy stockgate returns double11 returns.csv --dry-run
  $ caddy stockgate returns double11 returns.csv --column order_no`,
		RunE: action(returnMany, "sale", "file"),
	}
	cmd.Flags().String("column", "", "Column that has the reservation ids or refs")
	cmd.Flags().Bool("no-restock", false, "The units do not go on sale again")
	cmd.Flags().Bool("dry-run", false, "Only say what would happen")
	return cmd
}

// fileReturn is one return in a file.
type fileReturn struct {
	adminapi.NamedReturn
	line int // of the file, where it begins
}

// returnMany makes the returns of a file, a part at a time.
func returnMany(c *call) error {
	name := c.args[1]
	all, err := c.openReturns(name)
	if err != nil {
		return err
	}
	var sum adminapi.ReturnsAnswer
	var failed []string
	for part := range slices.Chunk(all, adminapi.MaxBulk) {
		answer, err := c.returnPart(part)
		if err != nil {
			if sum.Returned > 0 && !sum.DryRun {
				err = fmt.Errorf("%w; %d returns before that are made, the same file again does no harm", err, sum.Returned)
			}
			return err
		}
		sum.DryRun = answer.DryRun
		sum.Returned, sum.Units, sum.Already = sum.Returned+answer.Returned, sum.Units+answer.Units, sum.Already+answer.Already
		for _, f := range answer.Failed {
			failed = append(failed, fmt.Sprintf("%s:%d: %s: %s", name, part[f.Index].line, f.Name, f.Error))
		}
	}
	return c.reportReturns(&sum, failed)
}

func (c *call) returnPart(part []fileReturn) (*adminapi.ReturnsAnswer, error) {
	ask := adminapi.ReturnsRequest{DryRun: c.flag("dry-run")}
	for _, one := range part {
		one.Restock = !c.flag("no-restock")
		ask.Returns = append(ask.Returns, one.NamedReturn)
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	answer := new(adminapi.ReturnsAnswer)
	return answer, c.ask(http.MethodPost, "sales/"+segment(c.args[0])+"/returns", body, answer)
}

func (c *call) reportReturns(sum *adminapi.ReturnsAnswer, failed []string) error {
	if sum.DryRun {
		c.printf("dry run: nothing was changed\n")
	}
	c.printf("returned: %d (%d units)\nalready returned: %d\n", sum.Returned, sum.Units, sum.Already)
	if len(failed) == 0 {
		return nil
	}
	c.printf("not returned: %d\n%s", len(failed), someOf(failed))
	return fmt.Errorf("%d are not returned", len(failed))
}

// openReturns reads a file of returns; - is the standard input.
func (c *call) openReturns(name string) ([]fileReturn, error) {
	in := c.cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usageError{err}
		}
		defer f.Close()
		in = f
	}
	return readReturns(in, name, c.text("column"))
}

// readReturns reads a whole file of returns. column has the orders; empty: the first of returnedOrderColumns.
func readReturns(in io.Reader, file, column string) ([]fileReturn, error) {
	limited := &io.LimitedReader{R: in, N: adminapi.OrdersBytes + 1}
	buffered := bufio.NewReaderSize(limited, 64<<10)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = buffered.Discard(3)
	}
	rows := csv.NewReader(buffered)
	rows.FieldsPerRecord, rows.TrimLeadingSpace = -1, true
	first, _ := buffered.Peek(4096)
	rows.Comma = adminapi.Separator(first)
	list := &returnList{file: file, known: make(map[string]int)}
	for at := (*returnPlaces)(nil); ; {
		row, err := rows.Read()
		switch {
		case limited.N == 0:
			return nil, fmt.Errorf("%s is larger than %d bytes: split it", file, adminapi.OrdersBytes)
		case errors.Is(err, io.EOF) && len(list.all) == 0:
			return nil, fmt.Errorf("%s has no returns", file)
		case errors.Is(err, io.EOF):
			return list.all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		case at == nil:
			if at, err = returnPlacesOf(row, column); err != nil {
				return nil, usageError{fmt.Errorf("%s:1: %w", file, err)}
			}
			continue
		}
		line, _ := rows.FieldPos(0)
		if err := list.add(at, row); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		list.place(line)
	}
}

// returnPlaces are the columns of a file; below 0: there is none.
type returnPlaces struct{ order, sku, quantity, region, id int }

func returnPlacesOf(header []string, column string) (*returnPlaces, error) {
	find := func(names []string) int {
		for _, name := range names {
			if i := adminapi.IndexFold(header, name); i >= 0 {
				return i
			}
		}
		return -1
	}
	at := &returnPlaces{find(adminapi.ColumnNames(column, returnedOrderColumns)), find(adminapi.ItemColumns), find(adminapi.QuantityColumns), find(regionColumns), find(returnColumns)}
	switch {
	case at.order < 0 && column != "":
		return nil, fmt.Errorf("there is no column %q, as --column says; the first line has %q", column, header)
	case at.order < 0:
		return nil, fmt.Errorf("which column has the reservation ids or refs? The first line names the columns, such as ref,sku,quantity; it has %q; name one with --column", header)
	case at.sku >= 0 && at.quantity < 0:
		return nil, fmt.Errorf("there is a column sku and none with the quantity: add one; the first line has %q", header)
	case at.sku < 0 && at.quantity >= 0:
		return nil, fmt.Errorf("there is a column with the quantity and none with the sku: add one; the first line has %q", header)
	}
	return at, nil
}

// returnList collects the returns of a file.
type returnList struct {
	file  string
	all   []fileReturn
	known map[string]int // where a return is in all, by order and id
	rows  int
}

// place notes the line of the last row where it began a return.
func (l *returnList) place(line int) {
	if n := len(l.all); n > 0 && l.all[n-1].line == 0 {
		l.all[n-1].line = line
	}
}

// add takes one row. One of 0 units, or without an order, returns nothing.
func (l *returnList) add(at *returnPlaces, row []string) error {
	name, sku, region, id := adminapi.Field(row, at.order), adminapi.Field(row, at.sku), adminapi.Field(row, at.region), adminapi.Field(row, at.id)
	switch l.rows++; {
	case l.rows > adminapi.MaxOrders:
		return fmt.Errorf("more than %d rows: split the file", adminapi.MaxOrders)
	case name == "":
		return errors.New("the row names no order")
	case !sale.IsName(name):
		return fmt.Errorf("%.40q is no reservation id or ref: 1 to 128 printable ASCII characters without space", name)
	case id != "" && !sale.IsName(id):
		return fmt.Errorf("%.40q is no id of a return: 1 to 128 printable ASCII characters without space", id)
	}
	units, err := unitsOfRow(sku, adminapi.Field(row, at.quantity))
	if err != nil || sku != "" && units == 0 {
		return err
	}
	made := id == ""
	if made {
		id = idOfReturn(sku, region)
	}
	var lines []sale.Line
	if sku != "" {
		lines = []sale.Line{{SKU: sku, Quantity: units, Region: region}}
	}
	return l.put(name, id, lines, made)
}

// unitsOfRow reads the units of a row. Without a SKU there are none to be read.
func unitsOfRow(sku, quantity string) (int64, error) {
	switch {
	case sku == "" && quantity != "":
		return 0, fmt.Errorf("%.40q units, and no SKU: name the item, or leave out the quantity to return all that is left", quantity)
	case sku == "":
		return 0, nil
	}
	n, err := adminapi.WholeUnits(quantity)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number of units: write a whole number from 0", quantity)
	}
	return n, nil
}

// put adds lines to the return of an order with this id. made: the file gives it no id.
func (l *returnList) put(name, id string, lines []sale.Line, made bool) error {
	key := name + "\x00" + id
	i, there := l.known[key]
	if !there {
		l.known[key] = len(l.all)
		l.all = append(l.all, fileReturn{NamedReturn: adminapi.NamedReturn{Name: name, ReturnRequest: adminapi.ReturnRequest{ID: id, Lines: lines}}})
		return nil
	}
	before := &l.all[i]
	switch {
	case made:
		return fmt.Errorf("line %d has the same order and item: add up their units, or give each return an id in a column `return`", before.line)
	case len(lines) == 0 || len(before.Lines) == 0:
		return fmt.Errorf("line %d has the same return of the same order, and one of the two names no SKU: name each item, or none", before.line)
	case slices.ContainsFunc(before.Lines, func(b sale.Line) bool { return b.Cell() == lines[0].Cell() }):
		return fmt.Errorf("the return that begins at line %d has this item already: add up their units", before.line)
	case len(before.Lines) == returnLines:
		return fmt.Errorf("the return that begins at line %d has more than %d items: give the others another return id", before.line, returnLines)
	}
	before.Lines = append(before.Lines, lines...)
	return nil
}

// idOfReturn is the id of a return that has none: the same for every file, so that the same units never come back
// twice. Ids count for each order.
func idOfReturn(sku, region string) string {
	sum := sha256.Sum256([]byte(sku + "\x00" + region))
	return "csv-" + hex.EncodeToString(sum[:16])
}
