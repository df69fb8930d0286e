package sqldb

import (
	"context"
	"fmt"

	"github.com/stockgate/stockgate/internal/ledger"
)

// Append adds a batch.
func (t *Tables) Append(ctx context.Context, sale, owner string, b *ledger.Batch) error {
	changes, err := ledger.Fold(b.Movements)
	if err != nil {
		return err
	}
	return t.db.Write(ctx, func(tx Tx) error {
		at, err := t.lock(ctx, tx, sale, owner)
		if err == nil {
			err = ledger.Follows(sale, at, b)
		}
		if err == nil {
			err = tx.Insert(ctx, t.d.Prefix+"movements", ledger.MovementColumns, len(b.Movements), func(i int) []any {
				return ledger.MovementRow(sale, b.Epoch, &b.Movements[i])
			})
		}
		if err == nil {
			err = t.project(ctx, tx, sale, changes)
		}
		if err == nil && b.Document != nil {
			err = t.document(ctx, tx, sale, b.Document)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE `+t.d.Prefix+`drains SET epoch = ?, seq = ? WHERE sale = ?`, b.Epoch, b.Last(), sale)
		}
		return err
	})
}

// lock returns how far a sale is that an owner drains, and keeps it so until the transaction ends.
func (t *Tables) lock(ctx context.Context, tx Tx, sale, owner string) (at ledger.Position, err error) {
	ours := false
	err = tx.Each(ctx, `SELECT owner, epoch, seq FROM `+t.d.Prefix+`drains WHERE sale = ?`+t.d.Lock, []any{sale}, func(scan Scan) error {
		var has string
		err := scan(&has, &at.Epoch, &at.Seq)
		ours = has == owner
		return err
	})
	if err == nil && !ours {
		err = ledger.ErrNotOwner
	}
	return at, err
}

// project changes the projections of the movements.
func (t *Tables) project(ctx context.Context, tx Tx, sale string, c *ledger.Changes) error {
	if err := tx.Delete(ctx, sale, c.Anew); err != nil {
		return err
	}
	err := tx.Insert(ctx, t.d.Prefix+"reservations", ledger.ReservationColumns, len(c.Whole), func(i int) []any {
		return ledger.ReservationRow(sale, c.Whole[i])
	})
	if err != nil {
		return err
	}
	found, err := tx.Move(ctx, sale, c.Moved)
	if err == nil && found != int64(len(c.Moved)) {
		err = ledger.ErrChanged
	}
	if err != nil {
		return err
	}
	return tx.Add(ctx, sale, c.Cells)
}

func (t *Tables) document(ctx context.Context, tx Tx, sale string, d *ledger.Document) error {
	replace := t.d.upsert("sale", []string{"version", "status", "file"}, func(_, value string) string { return value })
	_, err := tx.Exec(ctx, `INSERT INTO `+t.d.Prefix+`sales (sale, version, status, file) VALUES (?, ?, ?, ?)`+replace,
		sale, d.Version, ledger.Text(d.Status), ledger.Text(d.File))
	return err
}

// Giveup ends a lease.
func (t *Tables) Giveup(ctx context.Context, sale, owner string) error {
	_, err := t.db.Exec(ctx, `UPDATE `+t.d.Prefix+`drains SET owner = '', lease_until = `+t.d.Ended+` WHERE sale = ? AND owner = ?`, sale, owner)
	return err
}

// Archive gives a sale another name in every table.
func (t *Tables) Archive(ctx context.Context, sale, owner string, at ledger.Position, as string) error {
	return t.db.Write(ctx, func(tx Tx) error {
		now, err := t.lock(ctx, tx, sale, owner)
		if err != nil || now != at {
			return err
		}
		for _, table := range []string{"movements", "reservations", "stock", "sales", "drains"} {
			if _, err := tx.Exec(ctx, `UPDATE `+t.d.Prefix+table+` SET sale = ? WHERE sale = ?`, as, sale); err != nil {
				return err
			}
		}
		return nil
	})
}

// Restart moves the position to another epoch.
func (t *Tables) Restart(ctx context.Context, sale string, from, to ledger.Position) error {
	return t.db.Write(ctx, func(tx Tx) error {
		found, err := tx.Exec(ctx, `UPDATE `+t.d.Prefix+`drains SET epoch = ?, seq = ?, owner = '', lease_until = `+t.d.Ended+` WHERE sale = ? AND epoch = ? AND seq = ?`,
			to.Epoch, to.Seq, sale, from.Epoch, from.Seq)
		if err == nil && found != 1 {
			err = fmt.Errorf("the ledger's position of sale %s has moved while the sale was rebuilt: begin again", sale)
		}
		return err
	})
}
