package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// Sales lists all sales.
func (l *Ledger) Sales(ctx context.Context) (out []string, err error) {
	err = l.each(ctx, `SELECT sale FROM stockgate_drains WHERE epoch > 0 AND strpos(sale, '`+ledger.ArchiveMark+`') = 0 ORDER BY sale COLLATE "C"`, nil, func(rows pgx.Rows) error {
		var sale string
		err := rows.Scan(&sale)
		out = append(out, sale)
		return err
	})
	return out, err
}

// Position is the last movement that the ledger has.
func (l *Ledger) Position(ctx context.Context, sale string) (at ledger.Position, err error) {
	err = l.pool.QueryRow(ctx, `SELECT epoch, seq FROM stockgate_drains WHERE sale = $1`, sale).Scan(&at.Epoch, &at.Seq)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return at, err
}

// Archived is the last epoch of a sale that was archived.
func (l *Ledger) Archived(ctx context.Context, sale string) (epoch int64, err error) {
	err = l.each(ctx, `SELECT sale FROM stockgate_drains WHERE starts_with(sale, $1)`, []any{sale + ledger.ArchiveMark}, func(rows pgx.Rows) error {
		var name string
		err := rows.Scan(&name)
		epoch = max(epoch, ledger.ArchivedEpoch(name))
		return err
	})
	return epoch, err
}

// Document is the sale's file.
func (l *Ledger) Document(ctx context.Context, sale string) (d ledger.Document, err error) {
	err = l.pool.QueryRow(ctx, `SELECT version, status, file FROM stockgate_sales WHERE sale = $1`, sale).Scan(&d.Version, &d.Status, &d.File)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return d, err
}

// Stock is where the units are.
func (l *Ledger) Stock(ctx context.Context, sale string) (out []ledger.Cell, err error) {
	const query = `SELECT cell, stock, available, held, in_doubt, confirmed FROM stockgate_stock WHERE sale = $1 ORDER BY cell COLLATE "C"`
	err = l.each(ctx, query, []any{sale}, func(rows pgx.Rows) error {
		var c ledger.Cell
		err := rows.Scan(&c.Name, &c.Stock, &c.Available, &c.Held, &c.InDoubt, &c.Confirmed)
		out = append(out, c)
		return err
	})
	return out, err
}

// Reservations calls yield for every reservation.
func (l *Ledger) Reservations(ctx context.Context, sale string, yield func(*ledger.Reservation) error) error {
	// ids in the order of their bytes, whatever the database's language is
	query := `SELECT ` + strings.Join(ledger.ReservationColumns[1:], ", ") + ` FROM stockgate_reservations WHERE sale = $1 ORDER BY id COLLATE "C"`
	return l.each(ctx, query, []any{sale}, func(rows pgx.Rows) error {
		r, err := ledger.ScanReservation(rows.Scan)
		if err != nil {
			return err
		}
		return yield(r)
	})
}

// Movements calls yield for movements in their order.
func (l *Ledger) Movements(ctx context.Context, sale string, epoch, after int64, most int, yield func(*journal.Movement) error) error {
	query := `SELECT ` + strings.Join(ledger.MovementColumns[2:], ", ") + ` FROM stockgate_movements
		WHERE sale = $1 AND epoch = $2 AND seq > $3 ORDER BY seq LIMIT $4`
	return l.each(ctx, query, []any{sale, epoch, after, most}, func(rows pgx.Rows) error {
		m, err := ledger.ScanMovement(rows.Scan)
		if err != nil {
			return err
		}
		return yield(m)
	})
}

// MovementsOfKinds calls yield for movements of some kinds.
func (l *Ledger) MovementsOfKinds(ctx context.Context, sale string, kinds []string, yield func(int64, *journal.Movement) error) error {
	query := `SELECT epoch, ` + strings.Join(ledger.MovementColumns[2:], ", ") + ` FROM stockgate_movements
		WHERE sale = $1 AND kind = ANY($2) ORDER BY epoch, seq`
	return l.each(ctx, query, []any{sale, kinds}, func(rows pgx.Rows) error { return ledger.ScanEpochMovement(rows.Scan, yield) })
}

// Trace counts what there is under a hash.
func (l *Ledger) Trace(ctx context.Context, hash string) (out []ledger.TracedRows, err error) {
	const query = `SELECT r.sale, count(DISTINCT r.id), count(m.seq) FROM stockgate_reservations r LEFT JOIN stockgate_movements m ON m.sale = r.sale AND m.id = r.id
		WHERE r.buyer = $1 OR strpos(r.charges, $2) > 0 OR strpos(r.unpaid || ' ', $2) > 0 GROUP BY r.sale ORDER BY r.sale COLLATE "C"`
	err = l.each(ctx, query, []any{hash, "|" + hash + " "}, func(rows pgx.Rows) error {
		var t ledger.TracedRows
		err := rows.Scan(&t.Sale, &t.Reservations, &t.Movements)
		out = append(out, t)
		return err
	})
	return out, err
}

func (l *Ledger) each(ctx context.Context, query string, args []any, row func(pgx.Rows) error) error {
	rows, err := l.pool.Query(ctx, query, args...)
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
