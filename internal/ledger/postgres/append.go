package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/stockgate/stockgate/internal/ledger"
)

// Append adds a batch.
func (l *Ledger) Append(ctx context.Context, sale, owner string, b *ledger.Batch) error {
	changes, err := ledger.Fold(b.Movements)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		if err := follows(ctx, tx, sale, owner, b); err != nil {
			return err
		}
		a := appending{ctx: ctx, tx: tx, sale: sale}
		a.copy("stockgate_movements", ledger.MovementColumns, len(b.Movements), func(i int) ([]any, error) {
			return ledger.MovementRow(sale, b.Epoch, &b.Movements[i]), nil
		})
		if len(changes.Anew) > 0 {
			a.do(`DELETE FROM stockgate_reservations WHERE sale = $1 AND id = ANY($2)`, sale, texts(changes.Anew))
		}
		a.copy("stockgate_reservations", ledger.ReservationColumns, len(changes.Whole), func(i int) ([]any, error) {
			return ledger.ReservationRow(sale, changes.Whole[i]), nil
		})
		a.moves(changes.Moved)
		a.cells(changes.Cells)
		if d := b.Document; d != nil {
			a.do(`INSERT INTO stockgate_sales (sale, version, status, file) VALUES ($1, $2, $3, $4)
				ON CONFLICT (sale) DO UPDATE SET version = $2, status = $3, file = $4`, sale, d.Version, ledger.Text(d.Status), ledger.Text(d.File))
		}
		a.do(`UPDATE stockgate_drains SET epoch = $2, seq = $3 WHERE sale = $1`, sale, b.Epoch, b.Last())
		return a.err
	})
}

// idleFor is the time, in ms, after which the database ends an idle transaction of a
// drainer. A drainer that hangs, or whose machine has left the network, would keep the
// sale locked for all others.
const idleFor = "5000"

// durably makes a committed transaction survive a crash, even where the database is
// configured otherwise: Redis forgets what the ledger has.
const durably = `set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)`

// follows reports whether the owner may append the batch, and keeps it so until the
// transaction ends.
func follows(ctx context.Context, tx pgx.Tx, sale, owner string, b *ledger.Batch) error {
	var has string
	var at ledger.Position
	const query = `SELECT owner, epoch, seq, set_config('idle_in_transaction_session_timeout', $2, true), ` + durably + `
		FROM stockgate_drains WHERE sale = $1 FOR UPDATE`
	err := tx.QueryRow(ctx, query, sale, idleFor).Scan(&has, &at.Epoch, &at.Seq, nil, nil)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && has != owner {
		return ledger.ErrNotOwner
	}
	if err != nil {
		return err
	}
	return ledger.Follows(sale, at, b)
}

func texts(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = ledger.Text(s)
	}
	return out
}

// appending runs statements until one fails.
type appending struct {
	ctx  context.Context
	tx   pgx.Tx
	sale string
	err  error
}

// do returns how many rows were changed.
func (a *appending) do(query string, args ...any) int64 {
	if a.err != nil {
		return 0
	}
	done, err := a.tx.Exec(a.ctx, query, args...)
	a.err = err
	return done.RowsAffected()
}

func (a *appending) copy(table string, columns []string, n int, row func(i int) ([]any, error)) {
	if a.err == nil && n > 0 {
		_, a.err = a.tx.CopyFrom(a.ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(n, row))
	}
}

// moves changes all reservations of the batch in one statement.
func (a *appending) moves(list []*ledger.Move) {
	n := len(list)
	if n == 0 {
		return
	}
	ids, from, states, causes, changed := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]int64, n)
	for i, m := range list {
		ids[i], from[i], states[i], causes[i], changed[i] = ledger.MoveRow(m)
	}
	rows := a.do(`UPDATE stockgate_reservations AS r SET state = m.state, cause = m.cause, changed = m.changed
		FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[]) AS m (id, was, state, cause, changed)
		WHERE r.sale = $1 AND r.id = m.id AND r.state = m.was`, a.sale, ids, from, states, causes, changed)
	if a.err == nil && rows != int64(n) {
		a.err = ledger.ErrChanged
	}
}

func (a *appending) cells(list []ledger.Cell) {
	if len(list) == 0 {
		return
	}
	names := make([]string, len(list))
	var columns [5][]int64
	for i, c := range list {
		names[i] = ledger.Text(c.Name)
		for j, units := range []int64{c.Stock, c.Available, c.Held, c.InDoubt, c.Confirmed} {
			columns[j] = append(columns[j], units)
		}
	}
	a.do(`INSERT INTO stockgate_stock AS s (sale, cell, stock, available, held, in_doubt, confirmed)
		SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
		ON CONFLICT (sale, cell) DO UPDATE SET stock = s.stock + excluded.stock, available = s.available + excluded.available,
		held = s.held + excluded.held, in_doubt = s.in_doubt + excluded.in_doubt, confirmed = s.confirmed + excluded.confirmed`,
		a.sale, names, columns[0], columns[1], columns[2], columns[3], columns[4])
}
