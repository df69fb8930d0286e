package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// following is one sale that a drainer follows.
type following struct {
	*Drainer
	sale string

	ours   time.Time         // until when the lease certainly holds; zero: this drainer has none
	at     Position          // what the ledger has, while this drainer has the lease
	last   *journal.Movement // the one at the position; nil: there is none
	most   int               // movements of one batch
	looked time.Time         // when the ledger was asked where it is, whatever Redis says that it has

	drift   drift         // of the cells in Redis against the ledger
	watched time.Time     // when they were compared last
	pause   time.Duration // until they are compared again

	saidLess time.Time // when it was logged that the ledger has less than was acknowledged

	trouble Trouble
}

// poll drains at most one batch and returns how many movements it had. ErrNoSale: the sale is
// being rebuilt, or fenced. A reservation.LostError: Redis has nothing of it.
func (s *following) poll(ctx context.Context) (int, error) {
	head, err := s.head(ctx)
	if errors.Is(err, shard.ErrNoSale) {
		s.lost() // a rebuild begins another epoch
		return 0, s.gone(ctx)
	}
	if err != nil {
		return 0, s.failed("journal", err)
	}
	if head.Fenced { // the entries that it lacks are about to come back
		s.lost()
		return 0, shard.ErrNoSale
	}
	if head.Behind() == 0 && time.Since(s.looked) < lookAgain {
		s.watchIdle(ctx, head.Epoch)
		return 0, nil
	}
	if err := s.migrate(ctx); err != nil {
		return 0, s.failed("ledger", fmt.Errorf("the ledger is not ready: %w", err))
	}
	if head.Behind() == 0 {
		if has, err := s.has(ctx, head); has || err != nil {
			return 0, err
		}
	}
	if ours, err := s.acquire(ctx, head); err != nil || !ours {
		s.lost()
		return 0, err
	}
	moved, err := s.batch(ctx, head)
	if errors.Is(err, ErrNotOwner) { // the previous batch took longer than the lease
		s.lost()
		return 0, nil
	}
	if err != nil {
		s.lost() // whether it was committed is unknown: read the ledger's position again
	} else if moved < s.most { // the ledger has nearly caught up, so that it can be compared
		s.watch(ctx)
	}
	if moved > 0 && head.Behind() == 0 { // a database that was put back may lack more
		s.looked = time.Time{}
	}
	return moved, err
}

// lost ends this drainer's lease: another drainer may have the sale from now on, and report its
// drift. An alarm that is on is not repeated if this drainer gets the sale back at once.
func (s *following) lost() {
	s.ours = time.Time{}
	s.metrics.NoDrift(s.sale, driftLedger)
}

// failed counts a failure.
func (s *following) failed(where string, err error) error {
	s.metrics.DrainFailed(where)
	return err
}

func (s *following) head(ctx context.Context) (journal.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	return s.journals.Head(ctx, s.sale)
}

// has reports whether the ledger still has all of the journal. A failover may reset a
// database to an earlier state after the last movement of a sale.
func (s *following) has(ctx context.Context, head journal.Head) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	at, err := s.ledger.Position(ctx, s.sale)
	if err != nil {
		return false, s.failed("ledger", fmt.Errorf("the ledger does not answer: %w", err))
	}
	s.looked = time.Now()
	return at == Position{head.Epoch, head.Last}, nil
}

// sure reports whether this drainer has the sale for at least another half lease. It does not rely
// on an earlier lease when the journal's epoch differs from the ledger's.
func (s *following) sure(epoch int64) bool {
	return time.Until(s.ours) > lease/2 && s.at.Epoch == epoch
}

// acquire makes sure that this drainer has the sale.
func (s *following) acquire(ctx context.Context, head journal.Head) (bool, error) {
	if s.sure(head.Epoch) {
		return true, nil
	}
	asked := time.Now()
	ours, err := s.take(ctx)
	if err != nil {
		return false, s.failed("ledger", fmt.Errorf("the ledger does not answer: %w", err))
	}
	s.looked = asked
	if ours {
		s.sayLess(head)
	}
	return ours, nil
}

// sayLess logs, at most once a minute, that the ledger has less than was acknowledged to Redis. head
// was read before the position: a ledger acknowledges what it has.
func (s *following) sayLess(head journal.Head) {
	if s.at.Epoch != head.Epoch && s.at != (Position{}) || s.at.Seq >= head.Acked || time.Since(s.saidLess) < repeatLog {
		return
	}
	s.saidLess = time.Now()
	s.log.Error("the ledger has less than was acknowledged: its file was removed, replaced, put back from a backup or failed over to a replica that was behind, or another edge follows the sale with a ledger of its own; "+
		"it gets from the journal what that still has", zap.String("sale", s.sale), zap.Int64("has", s.at.Seq), zap.Int64("acknowledged", head.Acked), zap.Int64("journal_from", head.First))
}

// take acquires or renews the lease of the sale, and reads the ledger's position.
func (s *following) take(ctx context.Context) (bool, error) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	at, ours, err := s.ledger.Acquire(ctx, s.sale, s.owner, lease)
	if err != nil {
		return false, err
	}
	if !ours {
		s.drift.on = false // the drainer that has it reports the drift now
		return false, nil
	}
	if at != s.at || s.ours.IsZero() {
		s.last = nil
		err := s.ledger.Movements(ctx, s.sale, at.Epoch, at.Seq-1, 1, func(m *journal.Movement) error {
			s.last = m
			return nil
		})
		if err != nil {
			return false, err
		}
		s.log.Debug("draining the journal", zap.String("sale", s.sale), zap.Int64("from", at.Seq))
	}
	s.at, s.ours = at, asked.Add(lease)
	_ = s.journals.NoteDrainer(ctx, s.sale, s.owner, asked) // for the doctor: noted again with the next lease
	return true, nil
}

// batch moves one batch.
func (s *following) batch(ctx context.Context, head journal.Head) (int, error) {
	if s.at.Epoch != head.Epoch && s.at != (Position{}) { // or it was rebuilt since the position was read
		now, err := s.head(ctx)
		switch {
		case errors.Is(err, shard.ErrNoSale):
			return 0, err
		case err != nil:
			return 0, s.failed("journal", err)
		}
		head = now
	}
	if s.at.Epoch != head.Epoch && s.at != (Position{}) {
		if archived, err := s.archive(ctx, head.Epoch); archived || err != nil {
			return 0, err
		}
		return 0, s.still(ctx, head.Epoch, OtherLife(ctx, s.journals, s.sale, s.at, head))
	}
	read, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	movements, err := s.read(read, head)
	b := &Batch{Epoch: head.Epoch, Movements: movements}
	if err == nil {
		b.Document, err = s.document(read, movements)
	}
	if err := s.still(ctx, head.Epoch, err); err != nil {
		return 0, err
	}
	if len(movements) == 0 {
		return 0, s.acknowledge(ctx)
	}
	write, cancel := context.WithTimeout(ctx, appendFor)
	defer cancel()
	if err := s.ledger.Append(write, s.sale, s.owner, b); err != nil {
		if errors.Is(err, ErrNotOwner) {
			return 0, err
		}
		s.most = max(s.most/2, batchLeast)
		return 0, s.failed("ledger", fmt.Errorf("the ledger refuses the batch: %w", err))
	}
	s.most = min(2*s.most, batchMost)
	s.at, s.last = Position{head.Epoch, b.Last()}, &movements[len(movements)-1]
	s.metrics.Drained(s.sale, len(movements))
	return len(movements), s.acknowledge(ctx)
}

// read reads what follows the position, and checks that it is the same journal: the ledger's
// last movement still has its number.
func (s *following) read(ctx context.Context, head journal.Head) (_ []journal.Movement, err error) {
	if head.Last < s.at.Seq { // another drainer has drained the newer movements, or Redis has lost them
		if head, err = s.head(ctx); err != nil {
			return nil, err
		}
	}
	if head.Last < s.at.Seq {
		return nil, &journal.GapError{Sale: s.sale, Want: head.Last + 1}
	}
	if err := lacks(s.sale, s.at, head); err != nil {
		return nil, err
	}
	if s.last != nil && head.First <= s.at.Seq {
		movements, err := s.journals.Movements(ctx, s.sale, s.at.Seq-1, s.most+1)
		if err == nil && len(movements) > 0 {
			if now := &movements[0]; !Same(now, s.last) {
				return nil, &HistoryError{s.sale, s.at.Seq, now.Kind + " " + now.ID, s.last.Kind + " " + s.last.ID}
			}
			return movements[1:], s.ends(movements[1:], head)
		}
		if gap := (*journal.GapError)(nil); err != nil && !errors.As(err, &gap) {
			return nil, err
		}
	}
	movements, err := s.journals.Movements(ctx, s.sale, s.at.Seq, s.most) // it has been trimmed up to here
	if err != nil {
		return nil, err
	}
	return movements, s.ends(movements, head)
}

// ends reports whether a journal lacks an entry that it should have.
func (s *following) ends(movements []journal.Movement, head journal.Head) error {
	if len(movements) == 0 && s.at.Seq < head.Last {
		return &journal.GapError{Sale: s.sale, Want: s.at.Seq + 1}
	}
	return nil
}

// Same reports whether two movements are the same.
func Same(a, b *journal.Movement) bool {
	return a.Seq == b.Seq && Text(a.Kind) == Text(b.Kind) && a.Time.Equal(b.Time) && Text(a.ID) == Text(b.ID)
}

// acknowledge tells Redis which movements the journal no longer needs to keep.
func (s *following) acknowledge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	if err := s.journals.Acknowledge(ctx, s.sale, s.at.Epoch, s.at.Seq); err != nil {
		return s.still(ctx, s.at.Epoch, err)
	}
	return nil
}

// still reports whether what was read since the head is of its epoch, and fails with err, what the
// reading failed with, if it is. ErrNoSale: the sale was deleted, rebuilt or fenced meanwhile. That is
// no failure, and the next poll begins with another head.
func (s *following) still(ctx context.Context, epoch int64, err error) error {
	switch now, asked := s.head(ctx); {
	case errors.Is(asked, shard.ErrNoSale) || asked == nil && (now.Epoch != epoch || now.Fenced):
		return shard.ErrNoSale
	case err != nil:
		return s.failed("journal", err)
	case asked != nil:
		return s.failed("journal", asked)
	}
	return nil
}

// document is the sale as it is now, if the batch has a change of it.
func (s *following) document(ctx context.Context, batch []journal.Movement) (*Document, error) {
	for i := range batch {
		switch batch[i].Kind {
		case "applied", "open", "paused", "closed", "rebuilt":
			version, status, file, err := s.journals.SaleDocument(ctx, s.sale)
			return &Document{version, status, file}, err
		}
	}
	return nil, nil
}

// noteTrouble logs an error when it changes, and its end.
func (s *following) noteTrouble(err error) {
	switch wrong, right := s.trouble.Note(err); {
	case right:
		s.log.Info("the ledger follows the sale again", zap.String("sale", s.sale))
	case wrong && lost(err):
		s.log.Error("the ledger cannot follow a sale that redis has lost", zap.String("sale", s.sale), zap.Error(err))
	case wrong:
		s.log.Error("the ledger does not follow the sale; selling goes on, and the journal keeps what happens",
			zap.String("sale", s.sale), zap.Error(err))
	}
}

// giveUp ends the lease, so that other drainers need not wait for it to expire.
func (s *following) giveUp(ctx context.Context) {
	if s.ours.IsZero() {
		return
	}
	defer s.lost()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveupFor)
	defer cancel()
	_ = s.journals.ForgetDrainer(ctx, s.sale, s.owner)
	_ = s.ledger.Giveup(ctx, s.sale, s.owner) // otherwise it expires
}
