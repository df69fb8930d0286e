package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// maxReadEntries bounds the movements that are read at a time.
const maxReadEntries = 2000

// errStop ends a run; its report says why.
var errStop = errors.New("nothing more can be compared")

// open reads the history of the sale, up to about now.
func (r *run) open(ctx context.Context) error {
	head, err := r.store.Journal().Head(ctx, r.sale)
	if err != nil {
		return err
	}
	if head.Fenced { // what redis lacks is about to come back
		return shard.ErrFenced
	}
	r.history = newHistory()
	r.history.epoch, r.report.Epoch = head.Epoch, head.Epoch
	begun := false
	if r.ledger != nil {
		if begun, err = r.openLedger(ctx); err != nil {
			return err
		}
	}
	if !begun {
		if err := r.openJournal(ctx, head); err != nil {
			return err
		}
	}
	if err := r.endOfJournal(ctx, head); err != nil {
		return err
	}
	return r.advance(ctx, head.Last)
}

// endOfJournal checks that the journal ends where the shard says.
func (r *run) endOfJournal(ctx context.Context, head journal.Head) error {
	from := max(head.Last-1, 0)
	tail, err := r.store.Journal().Movements(ctx, r.sale, from, 2)
	if err != nil && !isGap(err) {
		return err
	}
	if head.Last > 0 && (err != nil || len(tail) == 0) && head.Length == 0 && r.report.Against != AgainstLedger {
		r.report.Notes = append(r.report.Notes, "the journal is empty")
		return nil
	}
	if head.Last > from && err == nil && len(tail) == 0 {
		return r.broken("journal", &journal.GapError{Sale: r.sale, Want: head.Last})
	}
	return nil
}

func isGap(err error) bool {
	_, ok := errors.AsType[*journal.GapError](err)
	return ok
}

// openLedger starts from the ledger at its position. False: the ledger has nothing of this
// sale, or only the one that was deleted under its id. Movements never change, so the stock is
// read from them. Reservations may be read in a later state: the movements after the position only
// repeat it.
func (r *run) openLedger(ctx context.Context) (bool, error) {
	at, err := r.ledger.Position(ctx, r.sale)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ledger.ErrLedger, err)
	}
	if at == (ledger.Position{}) {
		r.report.Notes = append(r.report.Notes, "the ledger has nothing of this sale")
		return false, nil
	}
	head, err := r.store.Journal().Head(ctx, r.sale)
	if err != nil {
		return false, err
	}
	if err := r.sameJournal(ctx, head, at); err != nil {
		return false, err
	}
	if head, err = ledger.Standing(ctx, r.store.Journal(), r.ledger, r.sale, head); err != nil {
		if _, gap := errors.AsType[*ledger.PositionError](err); !gap {
			return false, err
		}
		r.ledgerLacks(err)
		return false, nil
	}
	if at.Epoch != head.Epoch {
		r.report.Notes = append(r.report.Notes, "the ledger still has the deleted sale, and nothing of the one that was loaded again: it is not compared")
		return false, nil
	}
	s := r.history
	r.report.Against = AgainstLedger
	s.stockKnown, s.whole = true, true // a ledger follows a sale from its first movement
	err = r.ledger.MovementsOfKinds(ctx, r.sale, rebuiltFrom, func(epoch int64, m *journal.Movement) error {
		switch {
		case epoch == at.Epoch && m.Seq > at.Seq: // it is read again
			return nil
		case m.Kind == "returned":
			s.giveBack(m)
		default:
			s.adjust(m)
		}
		s.last = m
		return nil
	})
	if err == nil {
		err = r.ledger.Reservations(ctx, r.sale, func(l *ledger.Reservation) error {
			s.add(l.ID, l.Record)
			return nil
		})
	}
	if err == nil {
		err = r.ledgerAgrees(ctx, at)
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", ledger.ErrLedger, err)
	}
	s.seq = at.Seq
	return true, nil
}

// ledgerLacks reports that the ledger has not all that came before the journal's first entry.
func (r *run) ledgerLacks(err error) {
	r.report.add(Difference{
		Kind: "ledger", Text: err.Error(),
		Cause: "redis has all its movements: the ledger's file was removed, replaced or put back from a backup, or another edge follows the sale with a ledger of its own",
		Repair: fmt.Sprintf("none by reconcile: put the ledger back that has these entries. If none has them, pause the sale and run `caddy stockgate rebuild %s --from ledger --force` while redis has the sale: "+
			"it keeps what redis has, and the ledger follows it again", r.sale),
	})
}

// ledgerAgrees compares the ledger's tables with each other, unless they have changed meanwhile.
func (r *run) ledgerAgrees(ctx context.Context, at ledger.Position) error {
	stock, err := r.ledger.Stock(ctx, r.sale)
	if err != nil {
		return err
	}
	if now, err := r.ledger.Position(ctx, r.sale); err != nil || now != at {
		return err
	}
	for _, c := range stock {
		if is, _ := r.history.total(c.Name); is != c {
			r.report.add(Difference{
				Kind: "ledger", Name: c.Name,
				Text:   fmt.Sprintf("the ledger contradicts itself about cell %s: its stock says %s, its movements and reservations make it %s", c.Name, cellText(c), cellText(is)),
				Cause:  "something other than stockgate has changed the ledger's tables",
				Repair: "none: put the tables right, or restore them from a backup. Until then the latter count",
			})
		}
	}
	return nil
}

// openJournal starts from the first entry of the journal or, if that is gone, from the
// reservations that Redis has.
func (r *run) openJournal(ctx context.Context, head journal.Head) error {
	s := r.history
	if head.First == 1 {
		first, err := r.store.Journal().Movements(ctx, r.sale, 0, 1)
		if err != nil {
			return err
		}
		if len(first) == 1 && first[0].Kind != "rebuilt" {
			s.stockKnown, s.whole, s.strict = true, true, true
			r.report.Against = AgainstJournal
			return nil
		}
	}
	r.report.Against = AgainstItself
	r.report.Notes = append(r.report.Notes,
		"the beginning of the journal is gone and no ledger has it: redis is compared with its own reservations, and what was deleted before the journal's first entry is not found")
	for id, text := range r.each(ctx, reservation.PartRecord) {
		if p, ok := parse(text); ok && p.fields.State != record.Tombstone {
			s.add(id, *p.fields)
		}
	}
	if r.scanError != nil {
		return r.scanError
	}
	s.seq = max(head.First-1, 0)
	if head.First == 0 {
		s.seq = head.Last
	}
	return nil
}

// advance continues the history up to an entry.
func (r *run) advance(ctx context.Context, to int64) error {
	for r.history.seq < to {
		if len(r.ahead) == 0 {
			if err := r.readOn(ctx); err != nil {
				return err
			}
		}
		for len(r.ahead) > 0 && r.history.seq < to {
			if err := r.history.apply(&r.ahead[0]); err != nil {
				return err
			}
			r.ahead = r.ahead[1:]
		}
	}
	return nil
}

// readOn reads the next movements: from the journal, or from the ledger if the journal was trimmed.
func (r *run) readOn(ctx context.Context) error {
	after := r.history.seq
	movements, err := r.store.Journal().Movements(ctx, r.sale, after, maxReadEntries)
	if isGap(err) && r.report.Against == AgainstLedger {
		movements = nil
		err = r.ledger.Movements(ctx, r.sale, r.history.epoch, after, maxReadEntries, func(m *journal.Movement) error {
			movements = append(movements, *m)
			return nil
		})
		if err != nil {
			return fmt.Errorf("%w: %w", ledger.ErrLedger, err)
		}
		if len(movements) == 0 || movements[0].Seq != after+1 {
			return r.broken("journal", &journal.GapError{Sale: r.sale, Want: after + 1})
		}
	}
	if isGap(err) {
		return r.broken("journal", err)
	}
	if err == nil && len(movements) == 0 {
		return r.broken("journal", &journal.GapError{Sale: r.sale, Want: after + 1})
	}
	r.ahead = movements
	return err
}

// broken reports a history that cannot be continued, and ends the run.
func (r *run) broken(kind string, err error) error {
	r.report.add(Difference{
		Kind: kind, Text: err.Error(),
		Cause:  "redis has lost its last writes, as in a failover without replica_acks or a crash without appendfsync always; or something other than stockgate has trimmed or deleted the journal",
		Repair: fmt.Sprintf("none by reconcile: pause the sale, and restore it with `caddy stockgate rebuild %s --from ledger`", r.sale),
	})
	return errStop
}
