package recovery

import (
	"context"
	"errors"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// foundText says what Redis has.
var foundText = map[PriorState]string{
	FoundNothing:    "redis has nothing of it",
	FoundUnfinished: "an earlier rebuild broke off",
	FoundOther:      "redis has another life of it: it was lost and loaded again, or restored from a backup, or has lost something",
	FoundBehind:     "redis has lost movements that the ledger has",
	FoundDisagrees:  "redis has lost movements that the ledger has, and has given their numbers to others",
	FoundAll:        "redis has everything that the ledger has",
}

// look finds out what Redis has, compared with the ledger.
func (b *rebuilding) look(ctx context.Context) error {
	if !b.o.Force && !b.life.Restoring { // else it has begun, and redis still has what it had
		if err := NewerLedger(ctx, b.ledger, b.store, b.id); err != nil {
			return err
		}
	}
	switch {
	case b.life.Restoring:
		b.out.Found = FoundUnfinished
	case b.life.Epoch == 0:
		b.out.Found = FoundNothing
		return b.notTheDeleted(ctx)
	case b.life.Epoch != b.at.Epoch:
		b.out.Found = FoundOther
		return b.notTheDeleted(ctx)
	case b.life.Seq < b.at.Seq:
		b.out.Found = FoundBehind
	default:
		b.out.Found = FoundAll
		if err := b.lacks(ctx); err != nil {
			return err
		}
		same, err := b.sameHistory(ctx)
		if err != nil {
			return err
		}
		if !same {
			b.out.Found = FoundDisagrees
		}
	}
	return nil
}

// lacks refuses, without Force, to rebuild from a ledger that lacks entries which redis has: with it,
// what redis has is merged.
func (b *rebuilding) lacks(ctx context.Context) error {
	head, err := b.store.Journal().Head(ctx, b.id)
	if err == nil {
		_, err = ledger.Standing(ctx, b.store.Journal(), b.ledger, b.id, head)
	}
	if _, gap := errors.AsType[*ledger.PositionError](err); !gap {
		return err
	}
	if b.o.Force {
		return nil
	}
	return refused("%w; redis has sale %s: if no ledger has these entries, pause it, and --force makes this ledger follow it again, with what redis has", err, b.id)
}

// notTheDeleted refuses to restore a sale that was deleted on purpose where another one was loaded
// under its id since: the ledger has nothing of that one yet.
func (b *rebuilding) notTheDeleted(ctx context.Context) error {
	deleted, err := b.store.Journal().DeletedEpoch(ctx, b.id)
	if err != nil || deleted < b.at.Epoch {
		return err
	}
	if journal.Replaced(b.at.Epoch, deleted, b.life.Epoch) {
		return refused("sale %s was deleted on purpose and loaded again: redis has the new one, and the ledger is about to archive the deleted one", b.id)
	}
	gone, err := b.store.Journal().Deleted(ctx)
	if err != nil || gone[b.id] != "" || b.o.Force {
		return err
	}
	return refused("sale %s was deleted on purpose and loaded again, and redis has lost the new one: the ledger has only the deleted one, which --force restores; "+
		"load the new one with `caddy stockgate sale apply FILE --new` and what the shop has not sold", b.id)
}

// sameHistory reports whether the ledger's last movement is in the journal. A trimmed
// movement counts as the same.
func (b *rebuilding) sameHistory(ctx context.Context) (bool, error) {
	var last *journal.Movement
	err := b.ledger.Movements(ctx, b.id, b.at.Epoch, b.at.Seq-1, 1, func(m *journal.Movement) error {
		last = m
		return nil
	})
	if err != nil || last == nil {
		return true, err
	}
	now, err := b.store.Journal().Movements(ctx, b.id, b.at.Seq-1, 1)
	if _, gap := errors.AsType[*journal.GapError](err); gap || err == nil && len(now) == 0 {
		return true, nil
	}
	return err == nil && ledger.Same(&now[0], last), err
}

// allowed returns an error if a rebuild may be a mistake; Force allows every rebuild.
func (b *rebuilding) allowed() error {
	switch {
	case b.o.Force:
	case b.out.Found == FoundAll && b.fell() > 0:
		return refused("redis has sale %s, and everything of it that the ledger has, but it went back once and lost at least %d movements that the ledger never had: "+
			"a rebuild cannot bring them back; compare the sale with the shop's orders, `caddy stockgate holds %s --confirm-from FILE`", b.id, b.fell(), b.id)
	case b.out.Found == FoundAll:
		return refused("redis has sale %s, and everything of it that the ledger has: nothing is to be rebuilt; --force does it all the same", b.id)
	case b.life.Status == sale.Open && !b.life.Restoring:
		return refused("sale %s is open in redis (%s): pause it first, `caddy stockgate sale pause %s`, or rebuild it with --force", b.id, foundText[b.out.Found], b.id)
	}
	return nil
}

// lookAgain reads the sale again, some time after look. Movements since then are merged.
func (b *rebuilding) lookAgain(ctx context.Context) error {
	now, err := b.store.Life(ctx, b.id)
	if err != nil {
		return err
	}
	if now.Epoch != b.life.Epoch || now.Restoring != b.life.Restoring {
		return ErrOvertaken
	}
	b.life = now
	if err := b.allowed(); err != nil {
		return err
	}
	return b.read(ctx)
}

// miss records what is known of movements that never reached the ledger.
func (b *rebuilding) miss() {
	b.out.Missing.Unknown = b.out.Found != FoundAll
	h, seen, ok := b.store.Journal().LastHead(b.id)
	if !ok || h.Epoch < b.at.Epoch {
		return
	}
	last := b.at.Seq
	if h.Epoch > b.at.Epoch { // of a life that the ledger has missed it lacks everything
		last = 0
	}
	if b.life.Epoch == h.Epoch { // what Redis has is merged
		last = max(last, b.life.Seq)
	}
	missing := max(seen-last, b.fell(), 0)
	b.out.Missing = Gap{
		AtLeast: missing, Unknown: b.out.Found != FoundAll || missing > 0,
		Seen: seen, Looked: h.Now, Waiting: h.Behind(), Oldest: h.Age.Milliseconds(),
	}
}

// fell returns the least number of movements that are missing because Redis went back, as
// after a failover, and reused their numbers. The newest number does not show that.
func (b *rebuilding) fell() int64 {
	f := b.store.Journal().Fall(b.id)
	if b.out.Found != FoundAll { // the ledger may have some of them
		f.Low = max(f.Low, b.at.Seq)
	}
	return f.Lost()
}
