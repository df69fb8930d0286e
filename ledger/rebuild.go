package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stockgate/stockgate/reservation"
	"github.com/stockgate/stockgate/sale"
)

// RebuildOptions say how a sale is rebuilt.
type RebuildOptions struct {
	// DryRun only says what would be done.
	DryRun bool
	// Open lets the sale sell at once, if it did so before. Else it is paused.
	Open bool
	// Force also rebuilds a sale that is open in Redis, or of which Redis has everything
	// that the ledger has.
	Force bool
	// By is who asks, for the journal.
	By string
}

// Found says what Redis had of a sale that is to be rebuilt.
type Found string

// FoundNothing: all is lost. FoundUnfinished: a rebuild broke off. FoundOther: all was
// lost, and the sale was loaded anew. FoundBehind, FoundDisagrees: the last movements are
// lost, and perhaps others have taken their numbers. FoundAll: nothing is lost.
const (
	FoundNothing    Found = "nothing"
	FoundUnfinished Found = "unfinished"
	FoundOther      Found = "another_life"
	FoundBehind     Found = "behind"
	FoundDisagrees  Found = "disagrees"
	FoundAll        Found = "everything"
)

// Rebuilt is what rebuilding a sale did, or would do.
type Rebuilt struct {
	Sale   string `json:"sale"`
	DryRun bool   `json:"dry_run,omitempty"`
	// Found is what Redis had.
	Found Found `json:"found"`
	// Status and Version are those of the sale afterwards, Epoch its new life.
	Status  sale.Status `json:"status"`
	Version int64       `json:"version"`
	Epoch   int64       `json:"epoch,omitempty"`
	// Ledger is the last movement that the ledger has, Until when it was made.
	Ledger Position  `json:"ledger"`
	Until  time.Time `json:"until,omitzero"`
	// Reservations are counted by their state.
	Reservations map[reservation.State]int `json:"reservations"`
	Cells        int                       `json:"cells"`
	Limits       int                       `json:"limits"`
	Adjustments  int                       `json:"adjustments"`
	Returns      int                       `json:"returns"`
	Missing      Missing                   `json:"missing"`
	// Carried is what Redis had and the ledger had not.
	Carried *Carried `json:"carried,omitempty"`
	// Notes are sentences for the operator.
	Notes []string `json:"notes"`
	// Milliseconds is how long it took.
	Milliseconds int64 `json:"milliseconds"`
}

// Missing is what is known of movements that never reached the ledger.
type Missing struct {
	// AtLeast is how many are known to be missing, as this process has seen the journal.
	// Left out: it knows of none, which does not say that there is none.
	AtLeast int64 `json:"at_least,omitzero"`
	// Unknown says that more may be missing than this process knows: what other edges did
	// in the last moment before the loss.
	Unknown bool `json:"unknown,omitempty"`
	// Seen is the newest number of the journal that this process has seen; 0: it has not
	// seen this life of the journal.
	Seen int64 `json:"seen,omitempty"`
	// Looked is when it looked last whether the ledger follows, Waiting how many movements
	// the ledger had not then, Oldest for how long (in ms) the first of them had waited.
	Looked  time.Time `json:"looked,omitzero"`
	Waiting int64     `json:"waiting,omitempty"`
	Oldest  int64     `json:"oldest_ms,omitempty"`
}

// versionLeap is by how much a rebuilt sale's version is ahead of the last one that is
// known: changes that were lost have had numbers that edges may remember.
const versionLeap = 1000

// refused is an operator's request that the state of the sale does not allow.
func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{reservation.ErrRefused}, args...)...)
}

// rebuilding is one run.
type rebuilding struct {
	ledger Ledger
	store  *reservation.Store
	id     string
	o      RebuildOptions
	began  time.Time

	life   reservation.Life
	at     Position
	doc    Document
	file   *sale.Sale
	status sale.Status // of before
	// forgets: what is over needs no record, because nothing that redis had of it is aside.
	forgets bool
	// oversold are cells of which more is sold than there was.
	oversold []Cell
	out      *Rebuilt
}

// Rebuild makes a sale in Redis again from what the ledger has of it. Nobody can buy
// while it runs, and every other call fails with reservation.ErrRestoring; what breaks
// off in the middle does not sell, and running it again begins anew. What Redis still has
// and the ledger has not is taken over.
func Rebuild(ctx context.Context, l Ledger, s *reservation.Store, id string, o RebuildOptions) (*Rebuilt, error) {
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
	if b.life.Epoch != 0 && b.life.Aside { // it broke off after the shard was filled
		return b.goOn(ctx)
	}
	if err := b.look(ctx); err != nil {
		return err
	}
	if err := b.allowed(); err != nil {
		return err
	}
	b.miss()
	// What Redis has is not touched before the ledger is known to be sound.
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
	case b.life.AsideStatus != "":
		b.status = b.life.AsideStatus
	case b.life.Epoch != 0 && b.life.Status != "":
		b.status = b.life.Status
	}
	b.out.Ledger = b.at
	return nil
}

// tryFill fails when what the ledger has does not fit together. While it still follows
// the sale, what is read of it may be of different moments.
func (b *rebuilding) tryFill(ctx context.Context) error {
	for range 3 {
		unsound := b.fill(ctx, nil)
		if !errors.Is(unsound, ErrChanged) {
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
	return nil // it never stands still: that is seen when the sale does
}

// nextVersion is the sale's version in its new life.
func (b *rebuilding) nextVersion() int64 {
	if b.life.Restoring {
		return b.doc.Version + versionLeap
	}
	return max(b.doc.Version, b.life.Version) + versionLeap
}

// restore fills the shard and begins its new life.
func (b *rebuilding) restore(ctx context.Context) error {
	if err := b.lookAgain(ctx); err != nil {
		return err
	}
	b.out.Version = b.nextVersion()
	r, err := b.store.Renew(ctx, b.file, b.doc.File, b.out.Version, b.life, max(b.at.Epoch, b.life.Epoch))
	if err != nil {
		return err
	}
	b.out.Epoch = r.Epoch
	// now nothing comes into the journal any more; what was on its way to the ledger has come
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
	b.forgets = !now.Aside
	if err := b.fill(ctx, r); err != nil {
		return err
	}
	if err := b.ledger.Restart(ctx, b.id, b.at, Position{Epoch: r.Epoch}); err != nil {
		return err
	}
	status := b.closing()
	if now.Aside && status == sale.Open {
		status = sale.Paused // until all is carried over
	}
	cause := fmt.Sprintf("%s from the ledger, entry %d of %d", b.o.By, b.at.Seq, b.at.Epoch)
	if err := r.Finish(ctx, b.out.Until, status, cause); err != nil {
		return err
	}
	b.out.Status = status
	if now.Aside {
		return b.carry(ctx)
	}
	b.advise()
	return nil
}

// closing is the status that the sale has in the end.
func (b *rebuilding) closing() sale.Status {
	if b.status == sale.Open && !b.o.Open {
		return sale.Paused
	}
	return b.status
}

// goOn takes over what an earlier run has set aside and not carried over.
func (b *rebuilding) goOn(ctx context.Context) error {
	b.out.Found, b.out.Epoch, b.out.Version, b.out.Status = FoundUnfinished, b.life.Epoch, b.life.Version, b.life.Status
	if b.o.DryRun {
		b.out.Notes = append(b.out.Notes, "An earlier rebuild has filled the sale and broke off before everything that redis had was carried over. Running it goes on with that.")
		return nil
	}
	return b.carry(ctx)
}
