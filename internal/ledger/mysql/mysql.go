// Package mysql keeps the ledger in MySQL 8 or newer, or in MariaDB 10.5 or newer, with InnoDB. Any number of
// processes may use the same database.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/stockgate/stockgate/internal/ledger"
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
type Ledger struct{ db *sql.DB }

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
	return &Ledger{db}, nil
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
	n, err := l.exec(ctx, `UPDATE stockgate_drains SET owner = ?, lease_until = `+now+` + ? WHERE sale = ? AND `+mayClaim, owner, forHow.Milliseconds(), sale, owner)
	if err != nil {
		return at, false, err
	}
	at, err = l.Position(ctx, sale)
	return at, n == 1 && err == nil, err
}

// Giveup ends a lease.
func (l *Ledger) Giveup(ctx context.Context, sale, owner string) error {
	_, err := l.exec(ctx, `UPDATE stockgate_drains SET owner = '', lease_until = 0 WHERE sale = ? AND owner = ?`, sale, owner)
	return err
}

// Archive gives a sale another name in every table.
func (l *Ledger) Archive(ctx context.Context, sale, owner string, at ledger.Position, as string) error {
	return l.write(ctx, func(tx *sql.Tx) error {
		has, now, err := lock(ctx, tx, sale)
		switch {
		case errors.Is(err, sql.ErrNoRows) || err == nil && has != owner:
			return ledger.ErrNotOwner
		case err != nil || now != at:
			return err
		}
		for _, table := range []string{"movements", "reservations", "stock", "sales", "drains"} {
			if _, err := tx.ExecContext(ctx, `UPDATE stockgate_`+table+` SET sale = ? WHERE sale = ?`, as, sale); err != nil {
				return err
			}
		}
		return nil
	})
}

// Restart moves the position to another epoch.
func (l *Ledger) Restart(ctx context.Context, sale string, from, to ledger.Position) error {
	n, err := l.exec(ctx, `UPDATE stockgate_drains SET epoch = ?, seq = ?, owner = '', lease_until = 0 WHERE sale = ? AND epoch = ? AND seq = ?`,
		to.Epoch, to.Seq, sale, from.Epoch, from.Seq)
	if err == nil && n != 1 {
		err = fmt.Errorf("the ledger's position of sale %s has moved while the sale was rebuilt: begin again", sale)
	}
	return err
}

// lock returns who drains a sale and how far it is, and keeps it so until the transaction ends.
func lock(ctx context.Context, tx *sql.Tx, sale string) (owner string, at ledger.Position, err error) {
	err = tx.QueryRowContext(ctx, `SELECT owner, epoch, seq FROM stockgate_drains WHERE sale = ? FOR UPDATE`, sale).Scan(&owner, &at.Epoch, &at.Seq)
	return owner, at, err
}

// write runs a transaction.
func (l *Ledger) write(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// exec runs one statement, and returns how many rows it has found.
func (l *Ledger) exec(ctx context.Context, query string, args ...any) (int64, error) {
	done, err := l.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// names are columns in backticks: lines is a word of MySQL's.
func names(columns []string) string { return "`" + strings.Join(columns, "`, `") + "`" }

var _ ledger.Ledger = (*Ledger)(nil)
