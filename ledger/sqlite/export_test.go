package sqlite

import "strconv"

// Exec runs a statement.
func (l *Ledger) Exec(statement string) error {
	_, err := l.db.Exec(statement)
	return err
}

// MostPages bounds the file as a full disk does; 0: no bound.
func (l *Ledger) MostPages(n int) error {
	l.db.SetMaxOpenConns(1) // the bound belongs to one connection
	if n == 0 {
		n = 1 << 30
	}
	var have int
	return l.db.QueryRow("PRAGMA max_page_count = " + strconv.Itoa(n)).Scan(&have)
}
