package command

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/sale"
)

// askStock runs the query of a sale file. The command runs it, never the server: only the
// command's machine needs to reach the shop's database and to know its password.
func askStock(f sale.StockFrom) (*sale.Table, error) {
	dsn, err := fillAddress(f.DSN)
	if err != nil {
		return nil, err
	}
	db, err := openStock(dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), f.Timeout)
	defer cancel()
	t, err := queryStock(ctx, db, f.Query)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("the shop's database has not answered within %v: make the query faster, or give it longer with `timeout`", f.Timeout)
	}
	return t, err
}

// fillAddress fills in the placeholders of an address. It says which one is empty, and
// repeats nothing else.
func fillAddress(dsn string) (string, error) {
	known := caddy.NewReplacer()
	var missing error
	filled, err := known.ReplaceFunc(dsn, func(name string, value any) (any, error) {
		if value == nil || value == "" {
			missing = fmt.Errorf("dsn: {%s} is empty: set the variable, or write the file, before the command runs", name)
			if !strings.HasPrefix(name, "env.") && !strings.HasPrefix(name, "file.") {
				missing = errors.New("dsn: it has a placeholder that is not known: there are {env.NAME} and {file./path}; write a brace that is none as \\{ or %7B")
			}
			return nil, missing
		}
		return value, nil
	})
	if missing != nil {
		return "", missing
	}
	return filled, err
}

// openStock opens the database of an address.
func openStock(dsn string) (*sql.DB, error) {
	kinds := make(map[string]bool)
	for _, info := range caddy.GetModules(app.LedgersNamespace) {
		kind, ok := info.New().(app.StockDatabase)
		if !ok {
			continue
		}
		if kind.OpensStock(dsn) {
			return kind.OpenStock(dsn)
		}
		kinds[info.ID.Name()] = true
	}
	if len(kinds) == 0 {
		return nil, errors.New("dsn: this Caddy was built without a database from which stock can be taken")
	}
	return nil, fmt.Errorf("dsn: it is the address of no database that this Caddy knows: there are %s, as in postgres://user:{env.PASSWORD}@host/database or sqlite:/path/to/file",
		strings.Join(slices.Sorted(maps.Keys(kinds)), " and "))
}

// queryStock runs a query in a transaction that only reads, and returns its rows, one
// more than a sale may have if there are too many.
func queryStock(ctx context.Context, db *sql.DB, query string) (*sale.Table, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("the shop's database does not answer: %w", err)
	}
	defer tx.Rollback()
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("the query fails: %w", err)
	}
	defer rows.Close()
	t := new(sale.Table)
	if t.Columns, err = rows.Columns(); err != nil {
		return nil, fmt.Errorf("the query fails: %w", err)
	}
	for len(t.Rows) <= sale.MaxItems && rows.Next() {
		values, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("the query fails: %w", err)
		}
		t.Rows = append(t.Rows, values)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("the query fails: %w", err)
	}
	return t, nil
}
