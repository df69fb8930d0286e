package mysql

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/ledger"
)

// most is how many rows one statement has: few enough for max_allowed_packet.
const most = 200

// Append adds a batch.
func (l *Ledger) Append(ctx context.Context, sale, owner string, b *ledger.Batch) error {
	changes, err := ledger.Fold(b.Movements)
	if err != nil {
		return err
	}
	return l.write(ctx, func(tx *sql.Tx) error {
		has, at, err := lock(ctx, tx, sale)
		if errors.Is(err, sql.ErrNoRows) || err == nil && has != owner {
			return ledger.ErrNotOwner
		}
		if err == nil {
			err = ledger.Follows(sale, at, b)
		}
		if err != nil {
			return err
		}
		a := appending{ctx: ctx, tx: tx, sale: sale}
		a.rows("INSERT INTO stockgate_movements ("+names(ledger.MovementColumns)+") VALUES ", len(ledger.MovementColumns), len(b.Movements), "", func(i int) []any {
			return ledger.MovementRow(sale, b.Epoch, &b.Movements[i])
		})
		for ids := range slices.Chunk(changes.Anew, most) {
			args := []any{sale}
			for _, id := range ids {
				args = append(args, ledger.Text(id))
			}
			a.do(`DELETE FROM stockgate_reservations WHERE sale = ? AND id IN (?`+strings.Repeat(", ?", len(ids)-1)+`)`, args...)
		}
		a.rows("INSERT INTO stockgate_reservations ("+names(ledger.ReservationColumns)+") VALUES ", len(ledger.ReservationColumns), len(changes.Whole), "", func(i int) []any {
			return ledger.ReservationRow(sale, changes.Whole[i])
		})
		a.moves(changes.Moved)
		a.rows(`INSERT INTO stockgate_stock (sale, cell, stock, available, held, in_doubt, confirmed) VALUES `, 7, len(changes.Cells),
			` ON DUPLICATE KEY UPDATE stock = stock + VALUES(stock), available = available + VALUES(available), held = held + VALUES(held),
			in_doubt = in_doubt + VALUES(in_doubt), confirmed = confirmed + VALUES(confirmed)`, func(i int) []any {
				c := changes.Cells[i]
				return []any{sale, ledger.Text(c.Name), c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed}
			})
		if d := b.Document; d != nil {
			a.do(`INSERT INTO stockgate_sales (sale, version, status, file) VALUES (?, ?, ?, ?)
				ON DUPLICATE KEY UPDATE version = VALUES(version), status = VALUES(status), file = VALUES(file)`, sale, d.Version, ledger.Text(d.Status), ledger.Text(d.File))
		}
		a.do(`UPDATE stockgate_drains SET epoch = ?, seq = ? WHERE sale = ?`, b.Epoch, b.Last(), sale)
		return a.err
	})
}

// appending runs statements until one fails.
type appending struct {
	ctx  context.Context
	tx   *sql.Tx
	sale string
	err  error
}

// do returns how many rows were found.
func (a *appending) do(query string, args ...any) (found int64) {
	if a.err != nil {
		return 0
	}
	done, err := a.tx.ExecContext(a.ctx, query, args...)
	if err == nil {
		found, err = done.RowsAffected()
	}
	a.err = err
	return found
}

// rows runs a statement for n rows, many at a time.
func (a *appending) rows(query string, columns, n int, end string, row func(i int) []any) {
	one := "(?" + strings.Repeat(", ?", columns-1) + ")"
	for from := 0; from < n; from += most {
		many := min(most, n-from)
		args := make([]any, 0, many*columns)
		for i := range many {
			args = append(args, row(from+i)...)
		}
		a.do(query+one+strings.Repeat(", "+one, many-1)+end, args...)
	}
}

// moves changes reservations, many in one statement.
func (a *appending) moves(list []*ledger.Move) {
	for moves := range slices.Chunk(list, most) {
		n := len(moves)
		var ids, was, states, causes, times []any
		for _, m := range moves {
			id, from, state, cause, changed := ledger.MoveRow(m)
			ids, was, states, causes, times = append(ids, id), append(was, id, from), append(states, id, state), append(causes, id, cause), append(times, id, changed)
		}
		// not a join with the rows: in a derived table texts lose the spaces at their end
		of := `CASE id` + strings.Repeat(` WHEN ? THEN ?`, n) + ` END`
		found := a.do(`UPDATE stockgate_reservations SET cause = `+of+`, changed = `+of+`, state = `+of+`
			WHERE sale = ? AND id IN (?`+strings.Repeat(`, ?`, n-1)+`) AND state = `+of,
			slices.Concat(causes, times, states, []any{a.sale}, ids, was)...)
		if a.err == nil && found != int64(n) {
			a.err = ledger.ErrChanged
		}
	}
}
