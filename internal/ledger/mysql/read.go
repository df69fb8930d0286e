package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// Sales lists all sales.
func (l *Ledger) Sales(ctx context.Context) (out []string, err error) {
	err = l.each(ctx, `SELECT sale FROM stockgate_drains WHERE epoch > 0 AND LOCATE(?, sale) = 0 ORDER BY sale`, []any{ledger.ArchiveMark}, func(rows *sql.Rows) error {
		var sale string
		err := rows.Scan(&sale)
		out = append(out, sale)
		return err
	})
	return out, err
}

// Position is the last movement that the ledger has.
func (l *Ledger) Position(ctx context.Context, sale string) (at ledger.Position, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT epoch, seq FROM stockgate_drains WHERE sale = ?`, sale).Scan(&at.Epoch, &at.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return at, err
}

// Archived is the last epoch of a sale that was archived.
func (l *Ledger) Archived(ctx context.Context, sale string) (epoch int64, err error) {
	err = l.each(ctx, `SELECT sale FROM stockgate_drains WHERE LOCATE(?, sale) = 1`, []any{sale + ledger.ArchiveMark}, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		epoch = max(epoch, ledger.ArchivedEpoch(name))
		return err
	})
	return epoch, err
}

// Document is the sale's file.
func (l *Ledger) Document(ctx context.Context, sale string) (d ledger.Document, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT version, status, file FROM stockgate_sales WHERE sale = ?`, sale).Scan(&d.Version, &d.Status, &d.File)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return d, err
}

// Stock is where the units are.
func (l *Ledger) Stock(ctx context.Context, sale string) (out []ledger.Cell, err error) {
	const query = `SELECT cell, stock, available, held, in_doubt, confirmed FROM stockgate_stock WHERE sale = ? ORDER BY cell`
	err = l.each(ctx, query, []any{sale}, func(rows *sql.Rows) error {
		var c ledger.Cell
		err := rows.Scan(&c.Name, &c.Stock, &c.Available, &c.Held, &c.InDoubt, &c.Confirmed)
		out = append(out, c)
		return err
	})
	return out, err
}

// Reservations calls yield for every reservation.
func (l *Ledger) Reservations(ctx context.Context, sale string, yield func(*ledger.Reservation) error) error {
	query := `SELECT ` + names(ledger.ReservationColumns[1:]) + ` FROM stockgate_reservations WHERE sale = ? ORDER BY id`
	return l.each(ctx, query, []any{sale}, func(rows *sql.Rows) error {
		r, err := ledger.ScanReservation(rows.Scan)
		if err != nil {
			return err
		}
		return yield(r)
	})
}

// Movements calls yield for movements in their order.
func (l *Ledger) Movements(ctx context.Context, sale string, epoch, after int64, most int, yield func(*journal.Movement) error) error {
	query := `SELECT ` + names(ledger.MovementColumns[2:]) + ` FROM stockgate_movements WHERE sale = ? AND epoch = ? AND seq > ? ORDER BY seq LIMIT ?`
	return l.each(ctx, query, []any{sale, epoch, after, most}, func(rows *sql.Rows) error {
		m, err := ledger.ScanMovement(rows.Scan)
		if err != nil {
			return err
		}
		return yield(m)
	})
}

// MovementsOfKinds calls yield for movements of some kinds.
func (l *Ledger) MovementsOfKinds(ctx context.Context, sale string, kinds []string, yield func(int64, *journal.Movement) error) error {
	query := `SELECT epoch, ` + names(ledger.MovementColumns[2:]) + ` FROM stockgate_movements
		WHERE sale = ? AND kind IN (''` + strings.Repeat(", ?", len(kinds)) + `) ORDER BY epoch, seq`
	args := []any{sale}
	for _, kind := range kinds {
		args = append(args, kind)
	}
	return l.each(ctx, query, args, func(rows *sql.Rows) error { return ledger.ScanEpochMovement(rows.Scan, yield) })
}

// Trace counts what there is under a hash.
func (l *Ledger) Trace(ctx context.Context, hash string) (out []ledger.TracedRows, err error) {
	const query = `SELECT r.sale, COUNT(DISTINCT r.id), COUNT(m.seq) FROM stockgate_reservations r LEFT JOIN stockgate_movements m ON m.sale = r.sale AND m.id = r.id
		WHERE r.buyer = ? OR LOCATE(?, r.charges) > 0 OR LOCATE(?, CONCAT(r.unpaid, ' ')) > 0 GROUP BY r.sale ORDER BY r.sale`
	charge := "|" + hash + " "
	err = l.each(ctx, query, []any{hash, charge, charge}, func(rows *sql.Rows) error {
		var t ledger.TracedRows
		err := rows.Scan(&t.Sale, &t.Reservations, &t.Movements)
		out = append(out, t)
		return err
	})
	return out, err
}

// each calls row for every row of an answer.
func (l *Ledger) each(ctx context.Context, query string, args []any, row func(*sql.Rows) error) error {
	rows, err := l.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
