package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/stockgate/stockgate/internal/ledger"
)

// writing is a transaction that sends columns as arrays, and rows with COPY.
type writing struct {
	statements
	tx pgx.Tx
}

func (w *writing) Insert(ctx context.Context, table string, columns []string, n int, row func(i int) []any) error {
	if n == 0 {
		return nil
	}
	_, err := w.tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil }))
	return err
}

func (w *writing) Delete(ctx context.Context, sale string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = ledger.Text(id)
	}
	_, err := w.Exec(ctx, `DELETE FROM stockgate_reservations WHERE sale = ? AND id = ANY(?)`, sale, texts)
	return err
}

func (w *writing) Move(ctx context.Context, sale string, moves []*ledger.Move) (found int64, err error) {
	n := len(moves)
	if n == 0 {
		return 0, nil
	}
	ids, from, states, causes, changed := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]int64, n)
	for i, m := range moves {
		ids[i], from[i], states[i], causes[i], changed[i] = ledger.MoveRow(m)
	}
	return w.Exec(ctx, `UPDATE stockgate_reservations AS r SET state = m.state, cause = m.cause, changed = m.changed
		FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[]) AS m (id, was, state, cause, changed)
		WHERE r.sale = ? AND r.id = m.id AND r.state = m.was`, ids, from, states, causes, changed, sale)
}

func (w *writing) Add(ctx context.Context, sale string, cells []ledger.Cell) error {
	if len(cells) == 0 {
		return nil
	}
	names := make([]string, len(cells))
	var columns [5][]int64
	for i, c := range cells {
		names[i] = ledger.Text(c.Name)
		for j, units := range []int64{c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed} {
			columns[j] = append(columns[j], units)
		}
	}
	_, err := w.Exec(ctx, `INSERT INTO stockgate_stock AS s (sale, cell, stock, available, held, in_doubt, confirmed)
		SELECT ?, * FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[])
		ON CONFLICT (sale, cell) DO UPDATE SET stock = s.stock + excluded.stock, available = s.available + excluded.available,
		held = s.held + excluded.held, in_doubt = s.in_doubt + excluded.in_doubt, confirmed = s.confirmed + excluded.confirmed`,
		sale, names, columns[0], columns[1], columns[2], columns[3], columns[4])
	return err
}
