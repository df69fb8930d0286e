package postgres

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqldb"
)

// durably makes a committed transaction survive a crash, even where the database is
// configured otherwise: Redis forgets what the ledger has.
const durably = `set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)`

// beginDurably begins a transaction.
const beginDurably = `BEGIN; SELECT ` + durably

// beginAppend begins one that the database ends after 5 s in which it is idle. A drainer that
// hangs, or whose machine has left the network, would keep the sale locked for all others.
const beginAppend = beginDurably + `, set_config('idle_in_transaction_session_timeout', '5000', true)`

// Append adds a batch.
func (l *Ledger) Append(ctx context.Context, sale, owner string, b *ledger.Batch) error {
	return sqldb.New(&database{l.pool, beginAppend}, dialect).Append(ctx, sale, owner, b)
}

// database is a pool of connections.
type database struct {
	pool  *pgxpool.Pool
	begin string // begins a transaction
}

func (d *database) Each(ctx context.Context, query string, args []any, row func(sqldb.Scan) error) error {
	return statements{d.pool}.Each(ctx, query, args, row)
}

func (d *database) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return statements{d.pool}.Exec(ctx, query, args...)
}

func (d *database) Write(ctx context.Context, do func(sqldb.Tx) error) error {
	return pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{BeginQuery: d.begin}, func(tx pgx.Tx) error { return do(&writing{statements{tx}, tx}) })
}

// statements runs them in a pool, or in a transaction.
type statements struct {
	in interface {
		Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	}
}

func (s statements) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	done, err := s.in.Exec(ctx, numbered(query), args...)
	return done.RowsAffected(), err
}

func (s statements) Each(ctx context.Context, query string, args []any, row func(sqldb.Scan) error) error {
	rows, err := s.in.Query(ctx, numbered(query), args...)
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

// numbered writes $1, $2, … for the question marks of a query.
func numbered(query string) string {
	parts := strings.Split(query, "?")
	var out strings.Builder
	for i, part := range parts[:len(parts)-1] {
		out.WriteString(part + "$" + strconv.Itoa(i+1))
	}
	return out.String() + parts[len(parts)-1]
}
