package command

import (
	"context"
	"errors"

	"github.com/stockgate/stockgate/caddymodule/internal/shopdb"
	"github.com/stockgate/stockgate/internal/sale"
)

// askStock runs the query of a sale file. It returns one row more than a sale may have if there are too many.
func askStock(ctx context.Context, f sale.StockFrom) (*sale.Table, error) {
	q := shopdb.Query{Name: "dsn", Address: f.DSN, Text: f.Query, Timeout: f.Timeout, Longer: "`timeout`"}
	t := new(sale.Table)
	err := q.Run(ctx, func(names []string) error {
		t.Columns = names
		return nil
	}, func(values []any) error {
		if t.Rows = append(t.Rows, values); len(t.Rows) > sale.MaxItems {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return t, nil
}

// errEnough ends a query that gives more rows than a sale may have.
var errEnough = errors.New("there are too many rows")
