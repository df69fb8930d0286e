package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/post"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// sending is one sale that an outbox sends.
type sending struct {
	*Outbox
	sale string

	seen  journal.Head // what the journal was when it was looked at last
	ours  time.Time    // until when the claim surely holds; zero: it is not ours
	batch *batch       // what is sent next; nil: it is not read yet

	fault error         // why the receiver has not accepted it; nil: it was not sent, or was accepted
	pause time.Duration // the last pause before a retry
	next  time.Time     // when it is retried

	looked  time.Time // when the lag was measured
	behind  bool      // the alarm is on
	trouble ledger.Trouble
}

// run sends the sale's movements until ctx ends.
func (s *sending) run(ctx context.Context) {
	defer s.giveUp(ctx)
	defer s.metrics.NoOutbox(s.sale)
	idle, failed := idleLeast, failedLeast
	for ctx.Err() == nil {
		sent, err := s.poll(ctx)
		if ctx.Err() != nil {
			return
		}
		s.noteTrouble(err)
		pause := time.Duration(0)
		switch {
		case s.fault != nil && err == s.fault:
			pause, failed = min(time.Until(s.next), idleMost), failedLeast
		case err != nil:
			pause, failed = failed, min(2*failed, failedMost)
		case sent != nil:
			idle, failed = idleLeast, failedLeast
			if !sent.full {
				pause = idleLeast / 4 // let a batch fill up
			}
		default:
			pause, idle, failed = idle, min(2*idle, idleMost), failedLeast
		}
		loop.Rest(ctx, pause, nil)
	}
}

// poll sends at most one batch, and returns it when the receiver has it.
func (s *sending) poll(ctx context.Context) (*batch, error) {
	head, err := s.head(ctx)
	if errors.Is(err, shard.ErrNoSale) {
		return nil, nil // announced, not loaded yet
	}
	if err != nil {
		return nil, s.failed("journal", err)
	}
	s.noteEnd(ctx, head)
	s.lag(ctx, &head)
	if b := s.batch; b != nil && (b.epoch != head.Epoch || b.after != head.Sent) {
		s.drop() // Redis has lost the sale, or another edge has sent it
	}
	if head.Unsent() == 0 {
		if s.drop(); head.Now.Sub(head.SentAt) > wellEvery {
			_, _, err = s.acquire(ctx, head.Epoch, 0)
		}
		return nil, err
	}
	if s.fault != nil && s.batch != nil && time.Now().Before(s.next) {
		if _, ours, err := s.keep(ctx); err != nil || !ours {
			return nil, err
		}
		return nil, s.fault
	}
	if ours, err := s.prepare(ctx, &head); err != nil || !ours {
		return nil, err
	}
	return s.send(ctx)
}

// noteEnd logs that an epoch of the sale has ended before the receiver had all of it. Of a sale that
// was deleted the receiver has all, or an operator has been told what it lacks.
func (s *sending) noteEnd(ctx context.Context, head journal.Head) {
	before := s.seen
	if s.seen = head; before.Epoch == 0 || before.Epoch == head.Epoch || before.Unsent() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	if deleted, err := s.journals.DeletedEpoch(ctx, s.sale); err == nil && before.Epoch <= deleted {
		return
	}
	s.log.Error("redis has lost the sale, or it was rebuilt, before the outbox had sent all: the receiver does not get the rest of that epoch; the ledger has it if there is one: `caddy stockgate journal export "+
		s.sale+" --epoch "+strconv.FormatInt(before.Epoch, 10)+"`", zap.String("sale", s.sale), zap.Int64("epoch", before.Epoch),
		zap.Int64("sent", before.Sent), zap.Int64("last", before.Last))
}

// failed counts a failure.
func (s *sending) failed(where string, err error) error {
	s.metrics.OutboxFailed(where)
	return err
}

func (s *sending) head(ctx context.Context) (journal.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	return s.journals.Head(ctx, s.sale)
}

// drop forgets the batch and the receiver's answer to it.
func (s *sending) drop() { s.batch, s.fault, s.pause = nil, nil, 0 }

// prepare reads the next batch unless it is there, and makes sure that this outbox has
// the sale and that every other edge would send the same batch.
func (s *sending) prepare(ctx context.Context, head *journal.Head) (bool, error) {
	read, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	var err error
	if s.batch == nil {
		if s.batch, err = s.read(read, head, 0); err != nil {
			s.batch = nil
			return false, s.failed("journal", err)
		}
	}
	at, ours, err := s.acquire(ctx, head.Epoch, s.batch.last)
	if err != nil || !ours {
		return false, err
	}
	if at.Epoch != head.Epoch || at.Sent != s.batch.after {
		return false, nil // it was read before another edge had sent it: the next turn drops it
	}
	if at.Sending != s.batch.last && !s.batch.accepted { // another edge has begun to send a different batch
		if s.batch, err = s.read(read, head, at.Sending); err != nil {
			s.batch = nil
			return false, s.failed("journal", err)
		}
		switch now, err := s.head(ctx); {
		case errors.Is(err, shard.ErrNoSale), err == nil && now.Epoch != head.Epoch: // what was read may be another epoch's
			s.batch = nil
			return false, nil
		case err != nil:
			s.batch = nil
			return false, s.failed("journal", err)
		}
	}
	return true, nil
}

// acquire takes or renews the right to send.
func (s *sending) acquire(ctx context.Context, epoch, last int64) (journal.SendLease, bool, error) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	at, ours, err := s.journals.AcquireLease(ctx, s.sale, s.owner, lease, epoch, last)
	switch {
	case err != nil:
		return at, false, s.failed("journal", err)
	case !ours:
		s.ours = time.Time{}
		s.drop()
	default:
		s.ours = asked.Add(lease)
	}
	return at, ours, nil
}

// keep renews the right when half of it is over, so that no other edge disturbs a
// receiver that needs a pause.
func (s *sending) keep(ctx context.Context) (journal.SendLease, bool, error) {
	if time.Until(s.ours) > lease/2 {
		return journal.SendLease{}, true, nil
	}
	return s.acquire(ctx, s.batch.epoch, s.batch.last)
}

// send sends the batch and records that it was accepted.
func (s *sending) send(ctx context.Context) (*batch, error) {
	b := s.batch
	if !b.accepted && !b.empty() {
		a, ours := s.deliver(ctx)
		switch {
		case a.Accepted():
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !ours:
			return nil, nil // interrupted: the edge that has the sale sends it
		default:
			s.metrics.OutboxPosted(a.Class())
			return nil, s.refuse(a)
		}
		s.metrics.OutboxPosted(a.Class())
		if b.lost != nil {
			s.log.Error("movements were trimmed before the outbox could send them, and the receiver was told so: give it the ledger's copy if there is one, or compare it with the sale's stock",
				zap.String("sale", s.sale), zap.Int64("from", b.lost.From), zap.Int64("to", b.lost.To))
		}
		s.metrics.OutboxSent(s.sale, b.movements)
	}
	b.accepted, s.fault, s.pause = true, nil, 0
	note, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteFor)
	defer cancel()
	if err := s.journals.Sent(note, s.sale, b.epoch, b.last); err != nil {
		return nil, s.failed("journal", err)
	}
	s.batch = nil
	return b, nil
}

// deliver posts the batch, and keeps the right to send meanwhile. False: another edge
// has the right now, or may have it.
func (s *sending) deliver(ctx context.Context) (post.Receipt, bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan post.Receipt, 1)
	b := s.batch
	go func() { done <- s.post(ctx, b) }()
	renew := time.NewTicker(lease / 4)
	defer renew.Stop()
	for {
		select {
		case a := <-done:
			return a, true
		case <-renew.C:
			call, end := context.WithDeadline(ctx, s.ours)
			_, _, _ = s.acquire(call, b.epoch, b.last)
			end()
			if time.Now().After(s.ours) { // as it is at once when another edge has it
				cancel()
				return <-done, false
			}
		}
	}
}

// refuse records that the receiver has not accepted the batch, and when to retry.
func (s *sending) refuse(a post.Receipt) error {
	again := s.options.Again
	least, most := again.Soon, again.SoonMost
	if a.Refused() {
		least, most = again.Late, again.LateMost
	}
	s.pause = min(max(2*s.pause, least), most)
	wait := s.pause/2 + rand.N(s.pause/2+1)
	s.next = time.Now().Add(max(wait, a.After))
	s.fault = fault(a)
	return s.failed("receiver", s.fault)
}

// noteTrouble logs an error when it changes, and its end.
func (s *sending) noteTrouble(err error) {
	wrong, right := s.trouble.Note(err)
	if wrong || right {
		s.metrics.OutboxTrouble(s.sale, err)
	}
	switch {
	case right:
		s.log.Info("the outbox sends the sale again", zap.String("sale", s.sale))
	case wrong:
		s.log.Error("the outbox does not get on with the sale; selling goes on, and the journal keeps what happens",
			zap.String("sale", s.sale), zap.Error(err))
	}
}

// giveUp ends the lease, so that other edges need not wait for it to expire.
func (s *sending) giveUp(ctx context.Context) {
	if s.ours.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteFor)
	defer cancel()
	_ = s.journals.GiveUpLease(ctx, s.sale, s.owner) // else it ends by itself
}
