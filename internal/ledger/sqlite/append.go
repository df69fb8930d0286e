package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/stockgate/stockgate/internal/ledger"
)

// Append adds a batch.
func (l *Ledger) Append(ctx context.Context, sale, owner string, b *ledger.Batch) error {
	changes, err := ledger.Fold(b.Movements)
	if err != nil {
		return err
	}
	return l.write(ctx, func(tx *sql.Tx) error {
		if err := follows(ctx, tx, sale, owner, b); err != nil {
			return err
		}
		a := appending{ctx: ctx, tx: tx, sale: sale}
		a.many(insert("movements", ledger.MovementColumns), len(b.Movements), func(i int) []any {
			return ledger.MovementRow(sale, b.Epoch, &b.Movements[i])
		})
		a.many(`DELETE FROM reservations WHERE sale = ? AND id = ?`, len(changes.Anew), func(i int) []any {
			return []any{sale, ledger.Text(changes.Anew[i])}
		})
		a.many(insert("reservations", ledger.ReservationColumns), len(changes.Whole), func(i int) []any {
			return ledger.ReservationRow(sale, changes.Whole[i])
		})
		a.moves(changes.Moved)
		a.cells(changes.Cells)
		if d := b.Document; d != nil {
			a.do(`INSERT INTO sales (sale, version, status, file) VALUES (?1, ?2, ?3, ?4)
				ON CONFLICT (sale) DO UPDATE SET version = ?2, status = ?3, file = ?4`, sale, d.Version, ledger.Text(d.Status), ledger.Text(d.File))
		}
		a.do(`UPDATE drains SET epoch = ?2, seq = ?3 WHERE sale = ?1`, sale, b.Epoch, b.Last())
		return a.err
	})
}

// follows reports whether the owner may append the batch now.
func follows(ctx context.Context, tx *sql.Tx, sale, owner string, b *ledger.Batch) error {
	var has string
	var at ledger.Position
	err := tx.QueryRowContext(ctx, `SELECT owner, epoch, seq FROM drains WHERE sale = ?1`, sale).Scan(&has, &at.Epoch, &at.Seq)
	if errors.Is(err, sql.ErrNoRows) || err == nil && has != owner {
		return ledger.ErrNotOwner
	}
	if err != nil {
		return err
	}
	return ledger.Follows(sale, at, b)
}

func insert(table string, columns []string) string {
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(columns)-1) + ")"
}

// appending runs statements until one fails.
type appending struct {
	ctx  context.Context
	tx   *sql.Tx
	sale string
	err  error
}

func (a *appending) do(query string, args ...any) {
	if a.err == nil {
		_, a.err = a.tx.ExecContext(a.ctx, query, args...)
	}
}

// many runs one statement for each row; it returns how many rows were changed.
func (a *appending) many(query string, n int, row func(i int) []any) (changed int64) {
	if a.err != nil || n == 0 {
		return 0
	}
	stmt, err := a.tx.PrepareContext(a.ctx, query)
	if err != nil {
		a.err = err
		return 0
	}
	defer stmt.Close()
	for i := range n {
		done, err := stmt.ExecContext(a.ctx, row(i)...)
		if err != nil {
			a.err = err
			return changed
		}
		if rows, err := done.RowsAffected(); err == nil {
			changed += rows
		}
	}
	return changed
}

func (a *appending) moves(list []*ledger.Move) {
	const query = `UPDATE reservations SET state = ?4, changed = ?5, cause = ?6 WHERE sale = ?1 AND id = ?2 AND state = ?3`
	changed := a.many(query, len(list), func(i int) []any {
		id, from, state, cause, changed := ledger.MoveRow(list[i])
		return []any{a.sale, id, from, state, changed, cause}
	})
	if a.err == nil && changed != int64(len(list)) {
		a.err = ledger.ErrChanged
	}
}

func (a *appending) cells(list []ledger.Cell) {
	a.many(`INSERT INTO stock (sale, cell, stock, available, held, in_doubt, confirmed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
		ON CONFLICT (sale, cell) DO UPDATE SET stock = stock + ?3, available = available + ?4, held = held + ?5, in_doubt = in_doubt + ?6, confirmed = confirmed + ?7`,
		len(list), func(i int) []any {
			c := list[i]
			return []any{a.sale, ledger.Text(c.Name), c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed}
		})
}
