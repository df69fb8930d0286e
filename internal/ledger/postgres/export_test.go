package postgres

import "context"

// Exec runs statements.
func (l *Ledger) Exec(statements string) error {
	_, err := l.pool.Exec(context.Background(), statements)
	return err
}

// Lock locks a table for all others until unlock.
func (l *Ledger) Lock(table string) (unlock func(), err error) {
	tx, err := l.pool.Begin(context.Background())
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec(context.Background(), "LOCK TABLE "+table)
	return func() { _ = tx.Rollback(context.Background()) }, err
}

// Waiting is how many sessions wait for a lock.
func (l *Ledger) Waiting() (n int, err error) {
	err = l.pool.QueryRow(context.Background(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&n)
	return n, err
}
