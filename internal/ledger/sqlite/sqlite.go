// Package sqlite keeps the ledger in a SQLite file. Several processes on one machine
// may use the same file; a network file system does not work.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/ledger/sqldb"
)

// Ledger is a ledger in a file.
type Ledger struct {
	*sqldb.Tables
	dsn, file string
	turn      chan struct{} // guards what follows; waiting for it ends with the caller's context
	at        *opened       // nil: it is not open
	migrated  bool          // the tables of the file that was opened last are up to date
	unsaid    error         // that the file was moved, which no drainer has heard; nil: they have
	closed    bool
}

var dialect = sqldb.Dialect{Quote: `"`, Find: "instr", Ended: "0", Present: sqldb.OnConflict, New: sqldb.Excluded}

// rows is how many rows one statement has. With more, an update is slower: SQLite goes through the list of them for each.
const rows = 10

// Open prepares to use a file. Its first use creates it and its directory.
func Open(file string) (*Ledger, error) {
	if file == "" {
		return nil, errors.New("a ledger needs a file")
	}
	// Full: a power cut loses nothing that was acknowledged to Redis. The cache size, in
	// KiB, and the pages between two checkpoints make large ledgers faster.
	options := url.Values{"_pragma": {"busy_timeout(5000)", "synchronous(FULL)", "cache_size(-32768)", "wal_autocheckpoint(8000)"}, "_txlock": {"immediate"}}
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: options.Encode()}).String()
	l := &Ledger{dsn: dsn, file: file, turn: make(chan struct{}, 1)}
	l.Tables = sqldb.NewSQL(dialect, rows, func(ctx context.Context, do func(*sql.DB) error) error {
		return l.use(ctx, func(o *opened) error { return do(o.db) })
	})
	return l, nil
}

// Close closes the file.
func (l *Ledger) Close() error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.closed = true
	return l.shut()
}

// Migrate brings the tables up to date.
func (l *Ledger) Migrate(ctx context.Context) error {
	return l.use(ctx, func(o *opened) error {
		if err := l.migrate(ctx, o); err != nil {
			return err
		}
		return l.locked(ctx, func() error {
			l.migrated = true
			return o.identify(ctx, l.file)
		})
	})
}

func (l *Ledger) migrate(ctx context.Context, o *opened) error {
	// a database of something else is left as it is
	if err := l.examine(ctx, o.db.QueryRowContext, new(int)); err != nil {
		return err
	}
	if err := o.useWAL(ctx); err != nil {
		return err
	}
	return sqldb.Write(ctx, o.db, func(tx *sql.Tx) error {
		var have int
		if err := l.examine(ctx, tx.QueryRowContext, &have); err != nil {
			return err
		}
		for i := have; i < len(migrations); i++ {
			if _, err := tx.ExecContext(ctx, migration(i)); err != nil {
				return fmt.Errorf("making the tables: %w", err)
			}
		}
		return nil
	})
}

// examine reads how many migrations were run, and fails on a file that is no ledger of this version.
func (l *Ledger) examine(ctx context.Context, query func(context.Context, string, ...any) *sql.Row, have *int) error {
	var application, tables int
	// in one statement: another process may be making the tables
	err := query(ctx, `SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_user_version, pragma_application_id`).Scan(have, &application, &tables)
	if err != nil {
		return err
	}
	switch {
	case application != applicationID && tables > 0:
		return fmt.Errorf("%s is the database of something else: give the ledger a file of its own", l.file)
	case *have > len(migrations):
		return ledger.ErrNewerSchema
	}
	return nil
}

// mayClaim reports whether an owner may acquire a sale: it has the lease already, the lease is
// over, or the lease ends so late that the clock must have been set back since.
const mayClaim = `(owner = ?2 OR lease_until <= ?3 OR lease_until > ?3 + 3600000)`

// Acquire acquires or renews the lease to drain a sale. All processes that use the file share
// one clock.
func (l *Ledger) Acquire(ctx context.Context, sale, owner string, forHow time.Duration) (at ledger.Position, ours bool, err error) {
	if err := l.news(ctx); err != nil {
		return at, false, err
	}
	// a process that may not have it must not block writers
	err = l.use(ctx, func(o *opened) error {
		row := o.db.QueryRowContext(ctx, `SELECT epoch, seq, `+mayClaim+` FROM drains WHERE sale = ?1`, sale, owner, time.Now().UnixMilli())
		return row.Scan(&at.Epoch, &at.Seq, &ours)
	})
	if err == nil && !ours || err != nil && !errors.Is(err, sql.ErrNoRows) {
		return at, false, err
	}
	err = l.use(ctx, func(o *opened) error {
		return sqldb.Write(ctx, o.db, func(tx *sql.Tx) (err error) {
			at, ours, err = acquire(ctx, tx, sale, owner, forHow)
			return err
		})
	})
	return at, ours && err == nil, err
}

// acquire is Acquire in a transaction, which first takes the file's only writer lock.
func acquire(ctx context.Context, tx *sql.Tx, sale, owner string, forHow time.Duration) (at ledger.Position, ours bool, err error) {
	now := time.Now()
	_, err = tx.ExecContext(ctx, `INSERT INTO drains (sale, epoch, seq, owner, lease_until) VALUES (?1, 0, 0, '', 0) ON CONFLICT DO NOTHING`, sale)
	if err != nil {
		return at, false, err
	}
	done, err := tx.ExecContext(ctx, `UPDATE drains SET owner = ?2, lease_until = ?4 WHERE sale = ?1 AND `+mayClaim,
		sale, owner, now.UnixMilli(), now.Add(forHow).UnixMilli())
	if err != nil {
		return at, false, err
	}
	n, err := done.RowsAffected()
	if err != nil {
		return at, false, err
	}
	err = tx.QueryRowContext(ctx, `SELECT epoch, seq FROM drains WHERE sale = ?1`, sale).Scan(&at.Epoch, &at.Seq)
	return at, n == 1, err
}

var _ ledger.Ledger = (*Ledger)(nil)
