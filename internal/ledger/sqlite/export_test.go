package sqlite

import (
	"context"
	"database/sql"
	"strconv"
)

// Exec runs a statement.
func (l *Ledger) Exec(statement string) error {
	return l.use(context.Background(), func(o *opened) error {
		_, err := o.db.Exec(statement)
		return err
	})
}

// MostPages bounds the file as a full disk does; 0: no bound.
func (l *Ledger) MostPages(n int) error {
	if n == 0 {
		n = 1 << 30
	}
	return l.use(context.Background(), func(o *opened) error {
		o.db.SetMaxOpenConns(2) // the bound belongs to one connection, and another one keeps the locks
		var have int
		return o.db.QueryRow("PRAGMA max_page_count = " + strconv.Itoa(n)).Scan(&have)
	})
}

// ExamineBeside looks at the file as Migrate does first, while another process begins to use it: meanwhile is
// called before each statement but the first.
func (l *Ledger) ExamineBeside(meanwhile func()) error {
	return l.use(context.Background(), func(o *opened) error {
		statements := 0
		query := func(ctx context.Context, text string, args ...any) *sql.Row {
			if statements++; statements > 1 {
				meanwhile()
			}
			return o.db.QueryRowContext(ctx, text, args...)
		}
		return l.examine(context.Background(), query, new(int))
	})
}
