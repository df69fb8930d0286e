package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite" // the driver, in Go
	sqlite3 "modernc.org/sqlite/lib"
)

// Only the driver opens the file. POSIX drops every lock that a process has on a file when the process
// closes any descriptor of it: another process then believes that it has the file to itself, and
// removes the log to which this one goes on writing.

// MovedError says that the ledger's file, or the log or the index beside it, was removed or replaced
// while this process used it. The next call opens the file again.
type MovedError struct {
	File string // the ledger's
	What string // what was moved
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("%s was removed or replaced while the ledger was in use: the ledger %s is opened anew, its position is that of the file which is there now, "+
		"and it gets what it lacks from the journal as far as that goes back; to copy a ledger use `sqlite3 %[2]s '.backup COPY'`, "+
		"and to put a copy back stop every edge that uses it, and remove its -wal and -shm files", e.What, e.File)
}

// beside are the names, after the ledger's, of the files without which what it has cannot be read: the
// log, and the index of the log with the locks of all processes.
var beside = [...]string{"", "-wal", "-shm"}

// opened is the file as this process has opened it.
type opened struct {
	db *sql.DB
	// keep stays open: while a connection is, no other process removes the log.
	keep  *sql.Conn
	files [len(beside)]os.FileInfo // nil: not there yet
	users int
}

// use calls do with the open file, and fails if another file has its name before or afterwards: no
// other process would find what do has written.
func (l *Ledger) use(ctx context.Context, do func(*opened) error) error {
	var o *opened
	err := l.locked(ctx, func() (err error) {
		if o, err = l.current(ctx); err == nil {
			o.users++
		}
		return err
	})
	if err != nil {
		return err
	}
	err = do(o)
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	o.users--
	if moved := o.moved(l.file); moved != nil {
		return moved
	}
	return err
}

// locked calls do, which may change the Ledger.
func (l *Ledger) locked(ctx context.Context, do func() error) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	return do()
}

// current returns the open file, and opens it if it is not. If it was moved, it is closed, and the
// next call opens the one that is there then.
func (l *Ledger) current(ctx context.Context) (*opened, error) {
	if l.closed {
		return nil, errors.New("the ledger is closed")
	}
	if l.at != nil {
		moved := l.at.moved(l.file)
		switch {
		case moved == nil:
			return l.at, nil
		case l.at.users > 0: // connections to two logs at a time would mix them
			return nil, moved
		}
		l.unsaid = errors.Join(moved, l.shut())
		return nil, l.unsaid
	}
	o, err := open(ctx, l.dsn, l.file)
	if err != nil {
		return nil, err
	}
	if l.migrated { // another file may have no tables
		err := l.migrate(ctx, o)
		if err == nil {
			err = o.identify(ctx, l.file)
		}
		if err != nil {
			return nil, errors.Join(err, o.close())
		}
	}
	l.at = o
	return o, nil
}

// news returns, once, that the file was moved since the last call: a drainer logs it, whichever call
// has noticed.
func (l *Ledger) news(ctx context.Context) (err error) {
	_ = l.locked(ctx, func() error {
		if l.at != nil && l.at.users == 0 {
			_, _ = l.current(ctx)
		}
		err, l.unsaid = l.unsaid, nil
		return nil
	})
	return err
}

// shut closes the file. SQLite then writes a log that was removed into the file, unless that was moved
// too: the log is of the file that is gone then, and would spoil the one that is there now.
func (l *Ledger) shut() error {
	if l.at == nil {
		return nil
	}
	o := l.at
	l.at = nil
	err := o.close()
	if o.isMoved(0, l.file) {
		for i := 1; i < len(beside); i++ {
			if o.files[i] != nil && !o.isMoved(i, l.file) {
				err = errors.Join(err, os.Remove(l.file+beside[i]))
			}
		}
	}
	return err
}

func (o *opened) close() error { return errors.Join(o.keep.Close(), o.db.Close()) }

// moved returns a MovedError if a file is not the one that was opened.
func (o *opened) moved(file string) error {
	for i := range beside {
		if o.files[i] != nil && o.isMoved(i, file) {
			return &MovedError{file, file + beside[i]}
		}
	}
	return nil
}

func (o *opened) isMoved(i int, file string) bool {
	now, err := os.Stat(file + beside[i])
	return err != nil || !os.SameFile(o.files[i], now)
}

// open opens the file, and creates it if it is not there.
func open(ctx context.Context, dsn, file string) (*opened, error) {
	if err := create(file); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(5)
	db.SetMaxIdleConns(4)
	o := &opened{db: db}
	if o.keep, err = db.Conn(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := o.identify(ctx, file); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

// identify notes which files were opened, of those that it has not noted yet.
func (o *opened) identify(ctx context.Context, file string) error {
	var tables int // SQLite opens the log when it reads
	if err := o.keep.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	for i := range beside {
		info, err := os.Stat(file + beside[i])
		switch {
		case o.files[i] != nil:
		case err == nil:
			o.files[i] = info
		case i == 0 || !errors.Is(err, os.ErrNotExist): // without WAL there is no log
			return err
		}
	}
	return nil
}

// useWAL lets readers and the writer work without waiting for each other; the file keeps this
// setting. The first time, it needs exclusive access to the file, for which SQLite does not
// wait.
func (o *opened) useWAL(ctx context.Context) error {
	for {
		_, err := o.keep.ExecContext(ctx, "PRAGMA journal_mode = WAL")
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

// create makes an empty file that only its owner can read, because purchases are private. It has
// another name until it is closed.
func create(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".ledger-*") // readable by its owner only
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return err
	}
	err = os.Link(f.Name(), file)
	if errors.Is(err, os.ErrExist) { // another process was faster; or it is a link to nothing
		_, err = os.Stat(file)
	}
	if err != nil {
		return fmt.Errorf("the ledger's file cannot be created: %w; create an empty one, readable by caddy's user only", err)
	}
	return nil
}
