// Package mysql keeps the ledger in MySQL 8 or newer, or in MariaDB 10.5 or newer, with InnoDB. Any number of
// processes may use the same database.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqldb"
)

const (
	// idleFor is the time, in s, after which the database ends a connection that does nothing. A drainer that
	// hangs, or whose machine has left the network, would keep the sale locked for all others. One that is slow
	// must not lose its transaction.
	idleFor = "30"
	// keptFor is how long an idle connection is used again: less than the database keeps it.
	keptFor = 2 * time.Second
	// lockedFor is how long a statement waits for a lock, in s: longer than a drainer that hangs has one.
	lockedFor = "50"
)

// Ledger is a ledger in a database.
type Ledger struct {
	*sqldb.Tables
	db *sql.DB
}

var dialect = sqldb.Dialect{
	Prefix: "stockgate_", Quote: "`", Find: "INSTR", Lock: " FOR UPDATE", Ended: "0",
	Present: func(string) string { return " ON DUPLICATE KEY UPDATE " },
	New:     func(column string) string { return "VALUES(" + column + ")" },
}

// rows is how many rows one statement has: few enough for max_allowed_packet.
const rows = 200

// Open prepares connections to a database, see [Config]. It does not dial.
func Open(address string) (*Ledger, error) { return open(address, idleFor) }

func open(address, idle string) (*Ledger, error) {
	c, err := Config(address)
	if err != nil {
		return nil, err
	}
	c.Params["wait_timeout"], c.Params["innodb_lock_wait_timeout"] = idle, lockedFor
	connector, err := mysql.NewConnector(c)
	if err != nil { // its text may repeat the address
		return nil, ErrAddress
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(4)
	db.SetConnMaxIdleTime(keptFor)
	use := func(_ context.Context, do func(*sql.DB) error) error { return do(db) }
	return &Ledger{sqldb.NewSQL(dialect, rows, use), db}, nil
}

// Close closes all connections.
func (l *Ledger) Close() error { return l.db.Close() }

// Durable returns why a batch that was stored may be lost in a crash of the database's machine; empty: it is not.
// Redis forgets what the ledger has. The setting is the server's: no session can change it.
func (l *Ledger) Durable(ctx context.Context) (why string, err error) {
	var flush string
	if err := l.db.QueryRowContext(ctx, `SELECT @@global.innodb_flush_log_at_trx_commit`).Scan(&flush); err != nil || flush == "1" {
		return "", err
	}
	return "the database has innodb_flush_log_at_trx_commit=" + flush + ", so that a crash of its machine loses movements that redis has forgotten: set it to 1", nil
}

// Migrate brings the tables up to date. If they are, it needs no right to create any.
func (l *Ledger) Migrate(ctx context.Context) error {
	c, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	have, err := version(ctx, c)
	if err == nil && have < len(migrations) {
		err = migrate(ctx, c)
	}
	if err != nil {
		return err
	}
	return fits(ctx, c)
}

// migrate runs what is missing, one process at a time.
func migrate(ctx context.Context, c *sql.Conn) error {
	const lock = `CONCAT('stockgate ', MD5(DATABASE()))` // locks are the server's
	var got sql.NullInt64
	if err := c.QueryRowContext(ctx, `SELECT GET_LOCK(`+lock+`, 60)`).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return errors.New("making the tables: another process has been at it for a minute")
	}
	defer c.ExecContext(context.WithoutCancel(ctx), `DO RELEASE_LOCK(`+lock+`)`)
	have, err := version(ctx, c) // another process may have been faster
	if err != nil {
		return err
	}
	for i := have; i < len(migrations); i++ {
		for _, statement := range migration(i) {
			if _, err := c.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("making the tables: %w", err)
			}
		}
	}
	return nil
}

// version is how many migrations were run.
func version(ctx context.Context, c *sql.Conn) (have int, err error) {
	var there int
	const query = `SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'stockgate_schema'`
	if err := c.QueryRowContext(ctx, query).Scan(&there); err != nil || there == 0 {
		return 0, err
	}
	err = c.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM stockgate_schema`).Scan(&have)
	if err == nil && have > len(migrations) {
		err = ledger.ErrNewerSchema
	}
	return have, err
}

// fits finds tables and columns with which a batch would not be atomic, or two names one.
func fits(ctx context.Context, c *sql.Conn) error {
	var name, has string
	err := c.QueryRowContext(ctx, `SELECT table_name, COALESCE(engine, 'no engine') FROM information_schema.tables
		WHERE table_schema = DATABASE() AND LEFT(table_name, 10) = 'stockgate_' AND COALESCE(engine, '') <> 'InnoDB' LIMIT 1`).Scan(&name, &has)
	if err == nil {
		return fmt.Errorf("the table %s has the engine %s, which keeps half of a batch after a crash: run ALTER TABLE %s ENGINE=InnoDB", name, has, name)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var table string
	err = c.QueryRowContext(ctx, `SELECT table_name, column_name, collation_name FROM information_schema.columns
		WHERE table_schema = DATABASE() AND LEFT(table_name, 10) = 'stockgate_' AND COALESCE(collation_name, 'utf8mb4_bin') <> 'utf8mb4_bin' LIMIT 1`).Scan(&table, &name, &has)
	if err == nil {
		return fmt.Errorf("the column %s of the table %s has the collation %s, which takes different names for one: make the tables with `caddy stockgate ledger schema mysql`, whose texts are utf8mb4_bin", name, table, has)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return err
}

// now is the database's clock in ms: SYSDATE, because NOW is the time at which a statement began, before it waited.
const now = `CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)`

// mayClaim reports whether an owner may acquire a sale: it has the lease already, the lease is over, or the
// lease ends so late that the clock must have been set back since.
const mayClaim = `(owner = ? OR lease_until <= ` + now + ` OR lease_until > ` + now + ` + 3600000)`

// Acquire acquires or renews the lease to drain a sale. Each writing statement is a transaction: a process that
// hangs cannot hang in the middle of one.
func (l *Ledger) Acquire(ctx context.Context, sale, owner string, forHow time.Duration) (at ledger.Position, ours bool, err error) {
	// a process that may not have it must not block writers
	err = l.db.QueryRowContext(ctx, `SELECT epoch, seq, `+mayClaim+` FROM stockgate_drains WHERE sale = ?`, owner, sale).Scan(&at.Epoch, &at.Seq, &ours)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = l.db.ExecContext(ctx, `INSERT INTO stockgate_drains (sale, epoch, seq, owner, lease_until) VALUES (?, 0, 0, '', 0) ON DUPLICATE KEY UPDATE epoch = epoch`, sale)
		if err != nil {
			return at, false, err
		}
	case err != nil || !ours:
		return at, false, err
	}
	done, err := l.db.ExecContext(ctx, `UPDATE stockgate_drains SET owner = ?, lease_until = `+now+` + ? WHERE sale = ? AND `+mayClaim, owner, forHow.Milliseconds(), sale, owner)
	if err != nil {
		return at, false, err
	}
	n, err := done.RowsAffected()
	if err != nil {
		return at, false, err
	}
	at, err = l.Position(ctx, sale)
	return at, n == 1 && err == nil, err
}

var _ ledger.Ledger = (*Ledger)(nil)
