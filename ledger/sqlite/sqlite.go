// Package sqlite keeps the ledger in a SQLite file. Several processes on one machine
// may use the same file; a network file system does not work.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite" // the driver, in Go
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/stockgate/stockgate/ledger"
)

// Ledger is a ledger in a file.
type Ledger struct {
	db   *sql.DB
	file string
}

// Open prepares to use a file. Migrate creates it and its directory.
func Open(file string) (*Ledger, error) {
	if file == "" {
		return nil, errors.New("a ledger needs a file")
	}
	// Full: a power cut loses nothing that was acknowledged to Redis. The cache size, in
	// KiB, and the pages between two checkpoints make large ledgers faster.
	options := url.Values{"_pragma": {"busy_timeout(5000)", "synchronous(FULL)", "cache_size(-32768)", "wal_autocheckpoint(8000)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return &Ledger{db, file}, nil
}

// Close closes the file.
func (l *Ledger) Close() error { return l.db.Close() }

// Migrate creates the file if there is none, and brings the tables up to date.
func (l *Ledger) Migrate(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(l.file), 0o700); err != nil {
		return err
	}
	// purchases are private
	f, err := os.OpenFile(l.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := l.useWAL(ctx); err != nil {
		return err
	}
	return l.write(ctx, func(tx *sql.Tx) error {
		var have, application, tables int
		for query, into := range map[string]*int{"PRAGMA user_version": &have, "PRAGMA application_id": &application, "SELECT count(*) FROM sqlite_schema": &tables} {
			if err := tx.QueryRowContext(ctx, query).Scan(into); err != nil {
				return err
			}
		}
		switch {
		case application != applicationID && tables > 0:
			return fmt.Errorf("%s is the database of something else: give the ledger a file of its own", l.file)
		case have > len(migrations):
			return ledger.ErrNewerSchema
		}
		for i := have; i < len(migrations); i++ {
			if _, err := tx.ExecContext(ctx, migration(i)); err != nil {
				return fmt.Errorf("making the tables: %w", err)
			}
		}
		return nil
	})
}

// useWAL lets readers and the writer work without waiting for each other; the file keeps this
// setting. The first time, it needs exclusive access to the file, for which SQLite does not
// wait.
func (l *Ledger) useWAL(ctx context.Context) error {
	for {
		_, err := l.db.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		var said *sqlite.Error
		if !errors.As(err, &said) || said.Code()&0xff != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// write runs a transaction that first takes the file's only writer lock.
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

// mayClaim says whether an owner may acquire a sale: it has the lease already, the lease is
// over, or the lease ends so late that the clock must have been set back since.
const mayClaim = `(owner = ?2 OR lease_until <= ?3 OR lease_until > ?3 + 3600000)`

// Acquire acquires or renews the lease to drain a sale. All processes that use the file share
// one clock.
func (l *Ledger) Acquire(ctx context.Context, sale, owner string, forHow time.Duration) (at ledger.Position, ours bool, err error) {
	now := time.Now()
	// a process that may not have it must not block writers
	err = l.db.QueryRowContext(ctx, `SELECT epoch, seq, `+mayClaim+` FROM drains WHERE sale = ?1`, sale, owner, now.UnixMilli()).Scan(&at.Epoch, &at.Seq, &ours)
	if err == nil && !ours || err != nil && !errors.Is(err, sql.ErrNoRows) {
		return at, false, err
	}
	err = l.write(ctx, func(tx *sql.Tx) error {
		now = time.Now()
		_, err := tx.ExecContext(ctx, `INSERT INTO drains (sale, epoch, seq, owner, lease_until) VALUES (?1, 0, 0, '', 0) ON CONFLICT DO NOTHING`, sale)
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, `UPDATE drains SET owner = ?2, lease_until = ?4 WHERE sale = ?1 AND `+mayClaim,
			sale, owner, now.UnixMilli(), now.Add(forHow).UnixMilli())
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err != nil {
			return err
		}
		ours = n == 1
		return tx.QueryRowContext(ctx, `SELECT epoch, seq FROM drains WHERE sale = ?1`, sale).Scan(&at.Epoch, &at.Seq)
	})
	return at, ours && err == nil, err
}

// Giveup ends a lease.
func (l *Ledger) Giveup(ctx context.Context, sale, owner string) error {
	_, err := l.db.ExecContext(ctx, `UPDATE drains SET owner = '', lease_until = 0 WHERE sale = ?1 AND owner = ?2`, sale, owner)
	return err
}

// Archive gives a sale another name in every table.
func (l *Ledger) Archive(ctx context.Context, sale, owner string, at ledger.Position, as string) error {
	return l.write(ctx, func(tx *sql.Tx) error {
		var has string
		var now ledger.Position
		err := tx.QueryRowContext(ctx, `SELECT owner, epoch, seq FROM drains WHERE sale = ?1`, sale).Scan(&has, &now.Epoch, &now.Seq)
		switch {
		case errors.Is(err, sql.ErrNoRows) || err == nil && has != owner:
			return ledger.ErrNotOwner
		case err != nil || now != at:
			return err
		}
		for _, table := range []string{"movements", "reservations", "stock", "sales", "drains"} {
			if _, err := tx.ExecContext(ctx, `UPDATE `+table+` SET sale = ?2 WHERE sale = ?1`, sale, as); err != nil {
				return err
			}
		}
		return nil
	})
}

// Restart moves the position to another epoch.
func (l *Ledger) Restart(ctx context.Context, sale string, from, to ledger.Position) error {
	done, err := l.db.ExecContext(ctx, `UPDATE drains SET epoch = ?4, seq = ?5, owner = '', lease_until = 0 WHERE sale = ?1 AND epoch = ?2 AND seq = ?3`,
		sale, from.Epoch, from.Seq, to.Epoch, to.Seq)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("the ledger's position of sale %s has moved while the sale was rebuilt: begin again", sale))
	}
	return nil
}

var _ ledger.Ledger = (*Ledger)(nil)
