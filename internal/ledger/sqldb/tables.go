// Package sqldb reads and writes a ledger's tables. A driver brings the database, its dialect, the tables and the lease to
// drain a sale; the statements are the same for all.
package sqldb

import (
	"context"

	"github.com/stockgate/stockgate/internal/ledger"
)

// Tables are the tables of a ledger: all of a [ledger.Ledger] but opening, making tables and acquiring a lease.
type Tables struct {
	db Database
	d  Dialect
}

// New returns the tables that a database has.
func New(db Database, d Dialect) *Tables { return &Tables{db, d} }

// Statements runs statements, in which each ? stands for the next argument.
type Statements interface {
	// Each calls row for every row of an answer. row must not use the ledger.
	Each(ctx context.Context, query string, args []any, row func(Scan) error) error
	// Exec returns how many rows a statement has found.
	Exec(ctx context.Context, query string, args ...any) (found int64, err error)
}

// Scan puts the columns of a row into its arguments.
type Scan = func(into ...any) error

// Database is a database as a driver has opened it. Each of its statements is a transaction.
type Database interface {
	Statements
	// Write runs a transaction. When it returns nil, a crash of the database loses nothing of it.
	Write(ctx context.Context, do func(Tx) error) error
}

// Tx is a transaction. It writes the many rows of a batch in the way that is fast in the database.
type Tx interface {
	Statements
	// Insert adds n rows.
	Insert(ctx context.Context, table string, columns []string, n int, row func(i int) []any) error
	// Delete removes reservations.
	Delete(ctx context.Context, sale string, ids []string) error
	// Move changes reservations that are in the state in which they must be, and returns how many were.
	Move(ctx context.Context, sale string, moves []*ledger.Move) (found int64, err error)
	// Add adds the units of cells to those that are there.
	Add(ctx context.Context, sale string, cells []ledger.Cell) error
}
