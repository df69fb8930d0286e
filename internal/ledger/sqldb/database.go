package sqldb

import (
	"context"
	"database/sql"
)

// database is one that [database/sql] has opened.
type database struct {
	Dialect
	rows int
	use  func(context.Context, func(*sql.DB) error) error
}

// NewSQL returns the tables of a database that [database/sql] opens; use calls its function with it. A statement writes at
// most so many rows.
func NewSQL(d Dialect, rows int, use func(context.Context, func(*sql.DB) error) error) *Tables {
	return New(&database{d, rows, use}, d)
}

func (d *database) Each(ctx context.Context, query string, args []any, row func(Scan) error) error {
	return d.use(ctx, func(db *sql.DB) error { return statements{db}.Each(ctx, query, args, row) })
}

func (d *database) Exec(ctx context.Context, query string, args ...any) (found int64, err error) {
	err = d.use(ctx, func(db *sql.DB) (err error) {
		found, err = statements{db}.Exec(ctx, query, args...)
		return err
	})
	return found, err
}

func (d *database) Write(ctx context.Context, do func(Tx) error) error {
	return d.use(ctx, func(db *sql.DB) error {
		return Write(ctx, db, func(tx *sql.Tx) error { return do(&writing{statements{tx}, tx, &d.Dialect, d.rows}) })
	})
}

// Write runs a transaction.
func Write(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// statements runs them in a database, or in one of its transactions.
type statements struct {
	in interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
}

func (s statements) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	done, err := s.in.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

func (s statements) Each(ctx context.Context, query string, args []any, row func(Scan) error) error {
	rows, err := s.in.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
