package mysql

import "context"

// Exec runs a statement.
func (l *Ledger) Exec(statement string) error {
	_, err := l.db.ExecContext(context.Background(), statement)
	return err
}

// Hold locks a sale as Append does; thaw ends the transaction.
func (l *Ledger) Hold(sale string) (thaw func() error, err error) {
	tx, err := l.db.Begin()
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec("SELECT owner FROM stockgate_drains WHERE sale = ? FOR UPDATE", sale)
	return tx.Commit, err
}

// OpenIdle is Open for a ledger whose connections the database ends when they do nothing for so many seconds.
func OpenIdle(address, seconds string) (*Ledger, error) { return open(address, seconds) }
