package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stockgate/stockgate/internal/store/journal"
)

// Positions says how far a ledger has come: a Ledger.
type Positions interface {
	Position(ctx context.Context, sale string) (Position, error)
}

// Heads reads heads of journals: a journal.Journal.
type Heads interface {
	HeadFor(ctx context.Context, sale string, h journal.Head, has int64) (journal.Head, error)
}

// Standing returns a head as it is for this ledger: Acked and Age are what the ledger has now. What was
// acknowledged to Redis may be another ledger's, or what this one had before it was put back. h must
// have been read before. The error is an ErrLedger if the ledger does not answer, and h is as it was
// then; a PositionError if it lacks movements that the journal no longer has. Of another epoch it has
// nothing.
func Standing(ctx context.Context, in Heads, l Positions, sale string, h journal.Head) (journal.Head, error) {
	at, err := l.Position(ctx, sale)
	if err != nil {
		return h, fmt.Errorf("%w: %w", ErrLedger, err)
	}
	has := at.Seq
	if at.Epoch != h.Epoch {
		has = 0
	}
	own, err := in.HeadFor(ctx, sale, h, has)
	if err == nil && (at.Epoch == h.Epoch || at == Position{}) {
		err = lacks(sale, at, h)
	}
	return own, err
}

// lacks returns a PositionError if a ledger lacks movements that the journal no longer has.
func lacks(sale string, at Position, h journal.Head) error {
	if h.First > at.Seq+1 {
		return &PositionError{Sale: sale, Have: at, Want: Position{h.Epoch, h.First - 1}}
	}
	return nil
}

// sameLease is the least time between the leases of two drainers on one ledger: what is left when the
// edges' estimates of Redis's time differ.
const sameLease = lease - time.Second

// Drainers lists the drainers of a sale: a journal.Journal.
type Drainers interface {
	Drainers(ctx context.Context, sale string, within time.Duration) ([]string, error)
}

// Apart returns the drainers of a sale that have ledgers of their own, by the names of their edges; nil:
// all edges have the same ledger.
func Apart(ctx context.Context, in Drainers, sale string) ([]string, error) {
	owners, err := in.Drainers(ctx, sale, sameLease)
	if len(owners) < 2 {
		return nil, err
	}
	slices.Sort(owners)
	return owners, err
}
