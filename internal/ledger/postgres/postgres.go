// Package postgres keeps the ledger in PostgreSQL 12 or newer. Any number of
// processes may use the same database.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqldb"
)

// Ledger is a ledger in a database.
type Ledger struct {
	*sqldb.Tables
	pool *pgxpool.Pool
}

var dialect = sqldb.Dialect{
	Prefix: "stockgate_", Quote: `"`, Find: "strpos", Bytes: ` COLLATE "C"`, Lock: " FOR UPDATE", Ended: "'epoch'",
	Present: sqldb.OnConflict, New: sqldb.Excluded,
}

// Open prepares connections to a database, postgres://… or keywords as in
// user=… dbname=…. It does not dial.
func Open(dsn string) (*Ledger, error) {
	if dsn == "" {
		return nil, errAddress
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil { // its text may repeat a password that was written in the wrong place
		return nil, errAddress
	}
	config.MaxConns = min(config.MaxConns, 4)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "stockgate"
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	return &Ledger{sqldb.New(&database{pool, beginDurably}, dialect), pool}, nil
}

var errAddress = errors.New("the address of the ledger's database cannot be read: write postgres://user:password@host:5432/database, " +
	"special characters in the password percent-encoded, or host=… user=… password=… dbname=…")

// Close closes all connections.
func (l *Ledger) Close() error {
	l.pool.Close()
	return nil
}

// migrating is the advisory lock of processes that migrate: any number that others
// do not use.
const migrating = 0x53746f636b67617

// Migrate brings the tables up to date. If they are, it needs no right to create any.
func (l *Ledger) Migrate(ctx context.Context) error {
	return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		if have, err := version(ctx, tx); err != nil || have == len(migrations) {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1), `+durably, int64(migrating)); err != nil {
			return err
		}
		have, err := version(ctx, tx) // another process may have been faster
		if err != nil {
			return err
		}
		for i := have; i < len(migrations); i++ {
			if _, err := tx.Exec(ctx, migration(i)); err != nil {
				return fmt.Errorf("making the tables: %w", err)
			}
		}
		return nil
	})
}

// version is how many migrations were run.
func version(ctx context.Context, tx pgx.Tx) (have int, err error) {
	var there bool
	// not to_regclass, which may see the state before the wait for a lock
	const query = `SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = 'stockgate_schema' AND n.nspname = ANY (current_schemas(false)))`
	if err := tx.QueryRow(ctx, query).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM stockgate_schema`).Scan(&have)
	if err == nil && have > len(migrations) {
		err = ledger.ErrNewerSchema
	}
	return have, err
}

// mayClaim reports whether an owner may acquire a sale: it has the lease already, the lease is
// over, or the lease ends so late that the clock must have been set back since. now() would be
// the start of the transaction, before it waited.
const mayClaim = `(d.owner = $2 OR d.lease_until <= clock_timestamp() OR d.lease_until > clock_timestamp() + interval '1 hour')`

// Acquire acquires or renews the lease to drain a sale. It is a single writing statement: a
// process that hangs cannot hang in the middle of it.
func (l *Ledger) Acquire(ctx context.Context, sale, owner string, forHow time.Duration) (at ledger.Position, ours bool, err error) {
	// a process that may not have it must not block writers
	err = l.pool.QueryRow(ctx, `SELECT epoch, seq, `+mayClaim+` FROM stockgate_drains AS d WHERE sale = $1`, sale, owner).Scan(&at.Epoch, &at.Seq, &ours)
	if err == nil && !ours || err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return at, false, err
	}
	const until = `clock_timestamp() + $3::bigint * interval '1 millisecond'`
	err = l.pool.QueryRow(ctx, `INSERT INTO stockgate_drains AS d (sale, epoch, seq, owner, lease_until) VALUES ($1, 0, 0, $2, `+until+`)
		ON CONFLICT (sale) DO UPDATE SET owner = $2, lease_until = `+until+` WHERE `+mayClaim+` RETURNING d.epoch, d.seq`,
		sale, owner, forHow.Milliseconds()).Scan(&at.Epoch, &at.Seq)
	if errors.Is(err, pgx.ErrNoRows) { // another process was faster
		at, err = l.Position(ctx, sale)
		return at, false, err
	}
	return at, err == nil, err
}

var _ ledger.Ledger = (*Ledger)(nil)
