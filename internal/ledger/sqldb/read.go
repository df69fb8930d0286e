package sqldb

import (
	"context"
	"strings"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// Sales lists all sales.
func (t *Tables) Sales(ctx context.Context) (out []string, err error) {
	query := `SELECT sale FROM ` + t.d.Prefix + `drains WHERE epoch > 0 AND ` + t.d.Find + `(sale, ?) = 0 ORDER BY sale` + t.d.Bytes
	err = t.db.Each(ctx, query, []any{ledger.ArchiveMark}, func(scan Scan) error {
		var sale string
		err := scan(&sale)
		out = append(out, sale)
		return err
	})
	return out, err
}

// Position is the last movement that the ledger has.
func (t *Tables) Position(ctx context.Context, sale string) (at ledger.Position, err error) {
	err = t.db.Each(ctx, `SELECT epoch, seq FROM `+t.d.Prefix+`drains WHERE sale = ?`, []any{sale}, func(scan Scan) error {
		return scan(&at.Epoch, &at.Seq)
	})
	return at, err
}

// Archived is the last epoch of a sale that was archived.
func (t *Tables) Archived(ctx context.Context, sale string) (epoch int64, err error) {
	query := `SELECT sale FROM ` + t.d.Prefix + `drains WHERE ` + t.d.Find + `(sale, ?) = 1`
	err = t.db.Each(ctx, query, []any{sale + ledger.ArchiveMark}, func(scan Scan) error {
		var name string
		err := scan(&name)
		epoch = max(epoch, ledger.ArchivedEpoch(name))
		return err
	})
	return epoch, err
}

// Document is the sale's file.
func (t *Tables) Document(ctx context.Context, sale string) (d ledger.Document, err error) {
	err = t.db.Each(ctx, `SELECT version, status, file FROM `+t.d.Prefix+`sales WHERE sale = ?`, []any{sale}, func(scan Scan) error {
		return scan(&d.Version, &d.Status, &d.File)
	})
	return d, err
}

// Stock is where the units are.
func (t *Tables) Stock(ctx context.Context, sale string) (out []ledger.Cell, err error) {
	query := `SELECT cell, stock, available, held, in_doubt, confirmed FROM ` + t.d.Prefix + `stock WHERE sale = ? ORDER BY cell` + t.d.Bytes
	err = t.db.Each(ctx, query, []any{sale}, func(scan Scan) error {
		var c ledger.Cell
		err := scan(&c.Name, &c.Stock, &c.Available, &c.Held, &c.InDoubt, &c.Confirmed)
		out = append(out, c)
		return err
	})
	return out, err
}

// Reservations calls yield for every reservation.
func (t *Tables) Reservations(ctx context.Context, sale string, yield func(*ledger.Reservation) error) error {
	query := `SELECT ` + t.d.names(ledger.ReservationColumns[1:]) + ` FROM ` + t.d.Prefix + `reservations WHERE sale = ? ORDER BY id` + t.d.Bytes
	return t.db.Each(ctx, query, []any{sale}, func(scan Scan) error {
		r, err := ledger.ScanReservation(scan)
		if err != nil {
			return err
		}
		return yield(r)
	})
}

// Movements calls yield for movements in their order.
func (t *Tables) Movements(ctx context.Context, sale string, epoch, after int64, most int, yield func(*journal.Movement) error) error {
	query := `SELECT ` + t.d.names(ledger.MovementColumns[2:]) + ` FROM ` + t.d.Prefix + `movements
		WHERE sale = ? AND epoch = ? AND seq > ? ORDER BY seq LIMIT ?`
	return t.db.Each(ctx, query, []any{sale, epoch, after, most}, func(scan Scan) error {
		m, err := ledger.ScanMovement(scan)
		if err != nil {
			return err
		}
		return yield(m)
	})
}

// MovementsOfKinds calls yield for movements of some kinds.
func (t *Tables) MovementsOfKinds(ctx context.Context, sale string, kinds []string, yield func(int64, *journal.Movement) error) error {
	query := `SELECT ` + t.d.names(ledger.MovementColumns[1:]) + ` FROM ` + t.d.Prefix + `movements
		WHERE sale = ? AND kind IN (''` + strings.Repeat(", ?", len(kinds)) + `) ORDER BY epoch, seq`
	args := []any{sale}
	for _, kind := range kinds {
		args = append(args, kind)
	}
	return t.db.Each(ctx, query, args, func(scan Scan) error { return ledger.ScanEpochMovement(scan, yield) })
}

// Trace counts what there is under a hash.
func (t *Tables) Trace(ctx context.Context, hash string) (out []ledger.TracedRows, err error) {
	query := `SELECT r.sale, count(DISTINCT r.id), count(m.seq) FROM ` + t.d.Prefix + `reservations r
		LEFT JOIN ` + t.d.Prefix + `movements m ON m.sale = r.sale AND m.id = r.id
		WHERE r.buyer = ? OR ` + t.d.Find + `(r.charges, ?) > 0 OR ` + t.d.Find + `(concat(r.unpaid, ' '), ?) > 0 GROUP BY r.sale ORDER BY r.sale` + t.d.Bytes
	charge := "|" + hash + " "
	err = t.db.Each(ctx, query, []any{hash, charge, charge}, func(scan Scan) error {
		var rows ledger.TracedRows
		err := scan(&rows.Sale, &rows.Reservations, &rows.Movements)
		out = append(out, rows)
		return err
	})
	return out, err
}
