package recovery

import (
	"context"
	"fmt"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
)

// sameJournal compares all entries that both the journal and the ledger have. These are none where
// the ledger has another epoch still, of a sale that was deleted.
func (r *run) sameJournal(ctx context.Context, head journal.Head, at ledger.Position) error {
	if at.Epoch != head.Epoch {
		deleted, err := r.store.Journal().DeletedEpoch(ctx, r.sale)
		if err != nil {
			return err
		}
		if journal.Replaced(at.Epoch, deleted, head.Epoch) {
			return nil // the ledger has a sale still that was deleted, and is about to archive it
		}
		return r.broken("ledger", ledger.OtherLife(ctx, r.store.Journal(), r.sale, at, head))
	}
	if at.Seq > head.Last {
		return r.broken("journal", &journal.GapError{Sale: r.sale, Want: head.Last + 1})
	}
	after := max(head.First-1, 0)
	for head.First > 0 && after < at.Seq {
		inRedis, err := r.store.Journal().Movements(ctx, r.sale, after, int(min(maxReadEntries, at.Seq-after)))
		if gap, ok := err.(*journal.GapError); ok && after == 0 && gap.Have > gap.Want || isGap(err) && gap.Have > gap.Want {
			now, e := r.store.Journal().Head(ctx, r.sale)
			if e != nil {
				return e
			}
			if now.First == gap.Have { // trimmed meanwhile
				after = now.First - 1
				continue
			}
		}
		if isGap(err) {
			return r.broken("journal", err)
		}
		if err != nil {
			return err
		}
		if len(inRedis) == 0 {
			return r.broken("journal", &journal.GapError{Sale: r.sale, Want: after + 1})
		}
		i := 0
		err = r.ledger.Movements(ctx, r.sale, at.Epoch, after, len(inRedis), func(m *journal.Movement) error {
			if i < len(inRedis) && !sameMovement(&inRedis[i], m) {
				return r.broken("ledger", &ledger.HistoryError{
					Sale: r.sale, Seq: inRedis[i].Seq, Redis: inRedis[i].Kind + " " + inRedis[i].ID, InLedger: m.Kind + " " + m.ID,
				})
			}
			i++
			return nil
		})
		if err == errStop {
			return err
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ledger.ErrLedger, err)
		}
		if i < len(inRedis) {
			return r.broken("ledger", fmt.Errorf("the ledger lacks entry %d of sale %s, and is beyond it", inRedis[i].Seq, r.sale))
		}
		after = inRedis[len(inRedis)-1].Seq
	}
	return nil
}

// sameMovement compares two entries in the form that databases store.
func sameMovement(a, b *journal.Movement) bool {
	text := func(m *journal.Movement) string {
		if m.Record == nil {
			return ""
		}
		return m.Record.Text()
	}
	return a.Seq == b.Seq && a.Time.Equal(b.Time) && a.Kind == b.Kind && ledger.Text(a.ID) == ledger.Text(b.ID) && a.Was == b.Was &&
		record.UnitsText(a.Lines) == record.UnitsText(b.Lines) && a.Buyer == b.Buyer && ledger.Text(a.Cause) == ledger.Text(b.Cause) &&
		ledger.Text(text(a)) == ledger.Text(text(b))
}
