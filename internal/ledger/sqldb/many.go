package sqldb

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/stockgate/stockgate/internal/ledger"
)

// writing is a transaction that writes several rows with each statement.
type writing struct {
	statements
	tx *sql.Tx
	*Dialect
	rows int // of one statement
}

// many writes n rows. query is the statement for so many of them, args are what it has of those from … to.
func (w *writing) many(ctx context.Context, n int, query func(rows int) string, args func(from, to int) []any) (found int64, err error) {
	for from := 0; from < n; {
		size := min(w.rows, n-from)
		stmt, err := w.tx.PrepareContext(ctx, query(size))
		if err != nil {
			return found, err
		}
		defer stmt.Close() // there are two at most
		for ; from+size <= n; from += size {
			done, err := stmt.ExecContext(ctx, args(from, from+size)...)
			if err != nil {
				return found, err
			}
			rows, err := done.RowsAffected()
			if err != nil {
				return found, err
			}
			found += rows
		}
	}
	return found, nil
}

// list is n times a text, with commas between.
func list(text string, n int) string { return text + strings.Repeat(", "+text, n-1) }

func (w *writing) Insert(ctx context.Context, table string, columns []string, n int, row func(i int) []any) error {
	return w.insert(ctx, table, columns, n, "", row)
}

// insert runs an INSERT that has an end.
func (w *writing) insert(ctx context.Context, table string, columns []string, n int, end string, row func(i int) []any) error {
	query := func(rows int) string {
		return "INSERT INTO " + table + " (" + w.names(columns) + ") VALUES " + list("("+list("?", len(columns))+")", rows) + end
	}
	_, err := w.many(ctx, n, query, func(from, to int) (args []any) {
		for i := from; i < to; i++ {
			args = append(args, row(i)...)
		}
		return args
	})
	return err
}

func (w *writing) Delete(ctx context.Context, sale string, ids []string) error {
	query := func(rows int) string {
		return `DELETE FROM ` + w.Prefix + `reservations WHERE sale = ? AND id IN (` + list("?", rows) + `)`
	}
	_, err := w.many(ctx, len(ids), query, func(from, to int) []any {
		args := []any{sale}
		for _, id := range ids[from:to] {
			args = append(args, ledger.Text(id))
		}
		return args
	})
	return err
}

func (w *writing) Move(ctx context.Context, sale string, moves []*ledger.Move) (found int64, err error) {
	query := func(rows int) string {
		// not a join with the rows: in a derived table of MySQL texts lose the spaces at their end
		of := `CASE id` + strings.Repeat(` WHEN ? THEN ?`, rows) + ` END`
		return `UPDATE ` + w.Prefix + `reservations SET cause = ` + of + `, changed = ` + of + `, state = ` + of + `
			WHERE sale = ? AND id IN (` + list("?", rows) + `) AND state = ` + of
	}
	return w.many(ctx, len(moves), query, func(from, to int) []any {
		var ids, was, states, causes, times []any
		for _, m := range moves[from:to] {
			id, from, state, cause, changed := ledger.MoveRow(m)
			ids, was, states, causes, times = append(ids, id), append(was, id, from), append(states, id, state), append(causes, id, cause), append(times, id, changed)
		}
		return slices.Concat(causes, times, states, []any{sale}, ids, was)
	})
}

func (w *writing) Add(ctx context.Context, sale string, cells []ledger.Cell) error {
	units := []string{"stock", "available", "held", "in_doubt", "confirmed"}
	add := w.upsert("sale, cell", units, func(column, value string) string { return column + " + " + value })
	return w.insert(ctx, w.Prefix+"stock", append([]string{"sale", "cell"}, units...), len(cells), add, func(i int) []any {
		c := cells[i]
		return []any{sale, ledger.Text(c.Name), c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed}
	})
}
