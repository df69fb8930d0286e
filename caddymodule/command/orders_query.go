package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/shopdb"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/sale"
)

const (
	minQueryTimeout = time.Second
	maxQueryTimeout = 10 * time.Minute
)

var (
	errNeedsQuery    = errors.New("--shop is the address of a database: give the query of its orders with --query")
	errShownPassword = errors.New("--shop has a password, which other users of this machine see in the list of processes: write {env.NAME} or {file./path} in its place")
)

// askOrders reads the shop's orders from its database. The list is as of the moment at which the query began.
func (c *call) askOrders(address string, columns adminapi.OrderColumns) (*adminapi.OrderList, error) {
	timeout, err := c.cmd.Flags().GetDuration("timeout")
	switch {
	case err != nil:
		return nil, err
	case timeout < minQueryTimeout || timeout > maxQueryTimeout:
		return nil, usageError{fmt.Errorf("--timeout must be %v to %v", minQueryTimeout, maxQueryTimeout)}
	case shopdb.ShowsPassword(address):
		return nil, usageError{errShownPassword}
	}
	q := shopdb.Query{Name: "--shop", Address: address, Text: c.text("query"), Timeout: timeout, Longer: "--timeout"}
	rows := &orderRows{list: adminapi.OrderList{File: "the query", Made: time.Now()}, columns: columns}
	done := c.working("asking the shop's database")
	err = q.Run(c.cmd.Context(), rows.begin, rows.add)
	done()
	if err != nil {
		return nil, err
	}
	if len(rows.list.Names) == 0 {
		return nil, errors.New("the query gives no order")
	}
	return &rows.list, nil
}

// orderRows collects the orders in the rows of a query: a row for each order, or for each item of an order.
type orderRows struct {
	list    adminapi.OrderList
	columns adminapi.OrderColumns
	names   []string
	at      adminapi.OrderPlaces
	row     int
	bytes   int64
}

// begin finds the columns.
func (r *orderRows) begin(names []string) (err error) {
	r.names = names
	if r.at, _, err = adminapi.OrderPlacesOf(names, r.columns); err != nil {
		return fmt.Errorf("--query: %w", columnFault(err))
	}
	return nil
}

// add takes a row.
func (r *orderRows) add(values []any) error {
	r.row++
	if values[r.at.Order] == nil { // it was not reserved
		return nil
	}
	name, err := sale.QueryText(values[r.at.Order])
	if err != nil {
		return r.wrong(r.at.Order, err)
	}
	if name != "" && !sale.IsName(name) {
		return r.wrong(r.at.Order, fmt.Errorf("must be a reservation id or ref, 1 to 128 printable ASCII characters without space, not %.40q", name))
	}
	if err := r.list.Add(name, r.row); err != nil {
		return err
	}
	if r.at.Quantity < 0 || name == "" {
		return r.bounded(len(name))
	}
	units, err := sale.QueryUnits(values[r.at.Quantity])
	if err == nil && units > sale.MaxUnits {
		err = fmt.Errorf("must be 0 to %d", int64(sale.MaxUnits))
	}
	if err != nil {
		return r.wrong(r.at.Quantity, err)
	}
	sku := ""
	if r.at.Item >= 0 {
		if sku, err = sale.QueryText(values[r.at.Item]); err != nil {
			return r.wrong(r.at.Item, err)
		}
	}
	r.list.Count(name, sku, units)
	return r.bounded(len(name) + len(sku))
}

// wrong names the row and the column of a value.
func (r *orderRows) wrong(column int, err error) error {
	return fmt.Errorf("row %d of the query: %s %w", r.row, r.names[column], err)
}

// bounded bounds what was read, as the size of a file is bounded.
func (r *orderRows) bounded(more int) error {
	if r.bytes += int64(more); r.bytes > adminapi.OrdersBytes {
		return fmt.Errorf("the query gives more than %d bytes: split it", adminapi.OrdersBytes)
	}
	return nil
}
