package shopdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app/journals"
)

// Query is a question to a shop's database.
type Query struct {
	// Name is what the address is called in errors, such as dsn.
	Name string
	// Address is the address of the database. It may hold placeholders.
	Address string
	// Text is the query.
	Text string
	// Timeout bounds the query, and the time in which its rows are read.
	Timeout time.Duration
	// Longer is how an operator gives it more time, such as `timeout`.
	Longer string
}

// Run runs the query in a transaction that only reads. columns gets the names of its columns, then row each row as it
// comes; its values are nil, or of a type that a driver of database/sql returns, and row may keep them. An error of either
// ends the query, and is returned as it is. No error repeats the address, which may have a password.
func (q *Query) Run(ctx context.Context, columns func([]string) error, row func([]any) error) error {
	address, err := Fill(q.Name, q.Address)
	if err != nil {
		return err
	}
	db, err := open(q.Name, address, q.Timeout)
	if err != nil {
		return err
	}
	defer db.Close()
	within, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	err = run(within, db, q.Text, columns, row)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("the shop's database has not answered within %v: make the query faster, or give it longer with %s", q.Timeout, q.Longer)
	}
	return err
}

// open opens the database of an address. within bounds a query on the database's side too.
func open(name, address string, within time.Duration) (*sql.DB, error) {
	kinds := make(map[string]bool)
	for _, info := range caddy.GetModules(journals.LedgersNamespace) {
		kind, ok := info.New().(journals.StockDatabase)
		if !ok {
			continue
		}
		if kind.OpensStock(address) {
			db, err := kind.OpenStock(address, within)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return db, nil
		}
		kinds[info.ID.Name()] = true
	}
	if len(kinds) == 0 {
		return nil, errors.New(name + ": this Caddy was built without a database that a shop may have")
	}
	return nil, fmt.Errorf("%s: it is the address of no database that this Caddy knows: there are %s, as in postgres://user:{env.PASSWORD}@host/database, mysql://user:{env.PASSWORD}@host/database or sqlite:/path/to/file",
		name, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
}

func run(ctx context.Context, db *sql.DB, query string, columns func([]string) error, row func([]any) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	switch {
	case errors.Is(err, journals.ErrReplica):
		return journals.ErrReplica
	case err != nil:
		return fmt.Errorf("the shop's database does not answer: %w", err)
	}
	defer tx.Rollback()
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return failed(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return failed(err)
	}
	if err := columns(names); err != nil {
		return err
	}
	for rows.Next() {
		values, places := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			return failed(err)
		}
		if err := row(values); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return failed(err)
	}
	return nil
}

func failed(err error) error { return fmt.Errorf("the query fails: %w", err) }
