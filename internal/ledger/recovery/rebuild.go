package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// RebuildOptions say how a sale is rebuilt.
type RebuildOptions struct {
	// DryRun reports what would be done and changes nothing.
	DryRun bool
	// Open lets the sale sell at once if it was open before. Otherwise it is paused.
	Open bool
	// Force also rebuilds a sale that is open in Redis, or of which Redis has lost nothing.
	Force bool
	// By names the operator, for the journal.
	By string
}

// PriorState says what Redis had of the sale before the rebuild.
type PriorState string

// FoundNothing: everything is lost. FoundUnfinished: a rebuild was interrupted.
// FoundOther: everything was lost and the sale was loaded again, or it comes from a backup. FoundBehind,
// FoundDisagrees: the last movements are lost, and others may have taken their numbers.
// FoundAll: nothing is lost.
const (
	FoundNothing    PriorState = "nothing"
	FoundUnfinished PriorState = "unfinished"
	FoundOther      PriorState = "another_life"
	FoundBehind     PriorState = "behind"
	FoundDisagrees  PriorState = "disagrees"
	FoundAll        PriorState = "everything"
)

// Rebuilt is what rebuilding a sale did, or would do.
type Rebuilt struct {
	Sale   string `json:"sale"`
	DryRun bool   `json:"dry_run,omitempty"`
	// Found is what Redis had before the rebuild.
	Found PriorState `json:"found"`
	// Status and Version are those of the sale afterwards, Epoch its new life.
	Status  sale.Status `json:"status"`
	Version int64       `json:"version"`
	Epoch   int64       `json:"epoch,omitempty"`
	// Ledger is the ledger's last movement, Until its time.
	Ledger ledger.Position `json:"ledger"`
	Until  time.Time       `json:"until,omitzero"`
	// Reservations are counted by their state.
	Reservations map[record.State]int `json:"reservations"`
	Cells        int                  `json:"cells"`
	Limits       int                  `json:"limits"`
	Adjustments  int                  `json:"adjustments"`
	Returns      int                  `json:"returns"`
	// Waiting is how many people are on the waiting list, those with an offer included.
	Waiting int `json:"waiting,omitempty"`
	Missing Gap `json:"missing"`
	// Merged is what Redis had and the ledger lacked; nil: there was no previous life.
	Merged *Merged `json:"merged,omitempty"`
	// Notes are sentences for the operator.
	Notes []string `json:"notes"`
	// Milliseconds is the duration of the rebuild.
	Milliseconds int64 `json:"milliseconds"`
}

// Gap is what is known of movements that never reached the ledger.
type Gap struct {
	// AtLeast is the number known to be missing, from what this process has seen of the
	// journal. If it is left out, this process knows of none, but there may be some.
	AtLeast int64 `json:"at_least,omitzero"`
	// Unknown says that more may be missing than this process knows: what other edges did
	// in the last moment before the loss.
	Unknown bool `json:"unknown,omitempty"`
	// Seen is the newest number of the journal that this process has seen; 0: it has not
	// seen this life of the journal.
	Seen int64 `json:"seen,omitempty"`
	// Looked is when the ledger's lag was last checked, Waiting how many movements it
	// lacked then, Oldest how long (in ms) the first of them had waited.
	Looked  time.Time `json:"looked,omitzero"`
	Waiting int64     `json:"waiting,omitempty"`
	Oldest  int64     `json:"oldest_ms,omitempty"`
}

// versionLeap is how far a rebuilt sale's version is ahead of the last known one: edges
// may remember the numbers of lost changes.
const versionLeap = 1000

// refused returns the error of an operator's request that the state of the sale forbids.
func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{shard.ErrRefused}, args...)...)
}

// rebuilding is one run.
type rebuilding struct {
	ledger ledger.Ledger
	store  *reservation.Store
	id     string
	o      RebuildOptions
	began  time.Time

	life   reservation.Life
	at     ledger.Position
	doc    ledger.Document
	file   *sale.Sale
	status sale.Status // before the rebuild
	// sameLife: what Redis had was the life that the ledger followed.
	sameLife bool
	// forgets: reservations that are over need no record, because there is no previous life.
	forgets bool
	// oversold are cells of which more was sold than there was.
	oversold []ledger.Cell
	out      *Rebuilt
}

// Rebuild restores a sale in Redis from the ledger, and merges what Redis still has and
// the ledger lacks. While it runs, the sale does not sell and every other call fails with
// shard.ErrRestoring. An interrupted rebuild leaves a sale that does not sell; call
// Rebuild again to finish it. The error is a shard.ErrRefused if the sale's state forbids
// a rebuild, and ErrOvertaken if another process has restored or loaded it meanwhile.
func Rebuild(ctx context.Context, l ledger.Ledger, s *reservation.Store, id string, o RebuildOptions) (*Rebuilt, error) {
	b := &rebuilding{ledger: l, store: s, id: id, o: o, began: time.Now(), out: &Rebuilt{Sale: id, DryRun: o.DryRun}}
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	b.out.Milliseconds = time.Since(b.began).Milliseconds()
	return b.out, nil
}

func (b *rebuilding) run(ctx context.Context) (err error) {
	if err := b.ledger.Migrate(ctx); err != nil {
		return fmt.Errorf("the ledger is not ready: %w", err)
	}
	if b.life, err = b.store.Life(ctx, b.id); err != nil {
		return err
	}
	if err := b.read(ctx); err != nil {
		return err
	}
	if b.life.Epoch != 0 && b.life.HasPrevious { // it was interrupted after the shard had been filled
		return b.goOn(ctx)
	}
	if err := b.look(ctx); err != nil {
		return err
	}
	if err := b.allowed(); err != nil {
		return err
	}
	b.miss()
	// Redis is not touched before the ledger is known to be consistent.
	if b.o.DryRun || !b.life.Restoring {
		if err := b.tryFill(ctx); err != nil {
			return fmt.Errorf("%w; redis is left as it is", err)
		}
	}
	if b.o.DryRun {
		b.out.Status, b.out.Version = b.closing(), b.nextVersion()
		b.advise()
		return nil
	}
	return b.restore(ctx)
}

// read reads what the ledger has of the sale as a whole.
func (b *rebuilding) read(ctx context.Context) (err error) {
	if b.at, err = b.ledger.Position(ctx, b.id); err != nil {
		return fmt.Errorf("the ledger does not answer: %w", err)
	}
	if b.doc, err = b.ledger.Document(ctx, b.id); err != nil {
		return fmt.Errorf("the ledger does not answer: %w", err)
	}
	if b.at.Epoch == 0 || b.doc.File == "" {
		return refused("the ledger has nothing of sale %s: is this the ledger that followed it?", b.id)
	}
	if b.file, err = sale.Decode([]byte(b.doc.File)); err != nil {
		return fmt.Errorf("the file of sale %s in the ledger cannot be read: %w", b.id, err)
	}
	b.status = sale.Status(b.doc.Status)
	switch {
	case b.life.PreviousStatus != "":
		b.status = b.life.PreviousStatus
	case b.life.Epoch != 0 && b.life.Status != "":
		b.status = b.life.Status
	}
	b.out.Ledger = b.at
	return nil
}

// tryFill fails when the ledger is inconsistent. While the ledger still follows the
// sale, parts of it may be read at different moments.
func (b *rebuilding) tryFill(ctx context.Context) error {
	for range 3 {
		unsound := b.fill(ctx, nil)
		if !errors.Is(unsound, ledger.ErrChanged) {
			return unsound
		}
		before := b.at
		if err := b.read(ctx); err != nil {
			return err
		}
		if b.at == before {
			return unsound
		}
	}
	return nil // it keeps moving: checked again once the sale has stopped
}

// nextVersion returns the sale's version in its new life.
func (b *rebuilding) nextVersion() int64 {
	if b.life.Restoring {
		return b.doc.Version + versionLeap
	}
	return max(b.doc.Version, b.life.Version) + versionLeap
}

// deletedBefore returns the epoch of the last sale under this id that was deleted before the one that
// is restored; 0: there was none. Where Redis was emptied, the ledger knows it alone.
func (b *rebuilding) deletedBefore(ctx context.Context) (int64, error) {
	deleted, err := b.store.Journal().DeletedEpoch(ctx, b.id)
	if err != nil {
		return 0, err
	}
	if deleted >= b.at.Epoch { // it is the deleted one that is restored
		deleted = 0
	}
	archived, err := b.ledger.Archived(ctx, b.id)
	if err != nil {
		return 0, fmt.Errorf("the ledger does not answer: %w", err)
	}
	return max(deleted, archived), nil
}

// restore fills the shard and begins its new life.
func (b *rebuilding) restore(ctx context.Context) error {
	if err := b.lookAgain(ctx); err != nil {
		return err
	}
	b.sameLife = b.life.Epoch != 0 && b.life.Epoch == b.at.Epoch
	b.out.Version = b.nextVersion()
	deleted, err := b.deletedBefore(ctx)
	if err != nil {
		return err
	}
	r, err := NewRestorer(b.store).Renew(ctx, b.file, b.doc.File, b.out.Version, b.life, max(b.at.Epoch, b.life.Epoch), deleted)
	if err != nil {
		return err
	}
	b.out.Epoch = r.Epoch
	// now the journal gets no more entries, and the last ones have reached the ledger
	before := b.doc
	if err := b.read(ctx); err != nil {
		return err
	}
	if b.doc != before {
		return refused("the ledger has got another file of sale %s meanwhile: begin again", b.id)
	}
	now, err := b.store.Life(ctx, b.id)
	if err != nil {
		return err
	}
	b.forgets = !now.HasPrevious
	if err := b.fill(ctx, r); err != nil {
		return err
	}
	if err := b.ledger.Restart(ctx, b.id, b.at, ledger.Position{Epoch: r.Epoch}); err != nil {
		if now, e := b.ledger.Position(ctx, b.id); e == nil && now != b.at {
			return fmt.Errorf("%w: %w", ErrOvertaken, err) // another rebuild has moved it
		}
		return err
	}
	if err := b.store.Journal().ForgetDrainers(ctx, b.id); err != nil {
		return err
	}
	status := b.closing()
	if now.HasPrevious && status == sale.Open {
		status = sale.Paused // until everything is merged
	}
	cause := b.o.By + ledger.Origin{From: b.at, Merged: now.PreviousEpoch}.String()
	if err := r.Finish(ctx, b.out.Until, status, cause); err != nil {
		return err
	}
	b.out.Status = status
	if now.HasPrevious {
		return b.merge(ctx)
	}
	b.advise()
	return nil
}

// closing returns the final status of the sale.
func (b *rebuilding) closing() sale.Status {
	if b.status == sale.Open && !b.o.Open {
		return sale.Paused
	}
	return b.status
}

// goOn merges the previous life that an interrupted run has left.
func (b *rebuilding) goOn(ctx context.Context) error {
	b.out.Found, b.out.Epoch, b.out.Version, b.out.Status = FoundUnfinished, b.life.Epoch, b.life.Version, b.life.Status
	if b.o.DryRun {
		b.out.Notes = append(b.out.Notes, "An earlier rebuild has filled the sale and broke off before everything that redis had was merged. Running it goes on with that.")
		return nil
	}
	return b.merge(ctx)
}
