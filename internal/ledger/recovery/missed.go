package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockgate/stockgate/internal/ledger"
	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// NewerLedger returns a shard.ErrRefused if this ledger is not the one to rebuild a sale from: another
// one has a later part of it, or this one has missed a life of which this process has read movements
// and that Redis no longer has. Each edge that keeps a ledger of its own has such ledgers.
func NewerLedger(ctx context.Context, l ledger.Ledger, s *reservation.Store, id string) error {
	mark, err := s.Journal().LedgerMark(ctx, id)
	if err != nil {
		return err
	}
	head, err := s.Journal().Head(ctx, id)
	gone := errors.Is(err, shard.ErrNoSale)
	if err != nil && !gone {
		return err
	}
	seen, number, _ := s.Journal().LastHead(id)
	at, err := l.Position(ctx, id) // last: it is not behind what it has acknowledged itself
	if err != nil {
		return fmt.Errorf("the ledger does not answer: %w", err)
	}
	deleted, err := s.Journal().DeletedEpoch(ctx, id)
	if err != nil || at == (ledger.Position{}) {
		return err
	}
	const remedy = "rebuild the sale from that ledger, and give every edge the same one. --force rebuilds it from this one, and what only that one has is sold again"
	switch has := fmt.Sprintf("this ledger has sale %s up to entry %d of epoch %d", id, at.Seq, at.Epoch); {
	case mark.Epoch > deleted && mark.After(at.Epoch, at.Seq):
		return refused("%s, and the ledger of edge %s up to entry %d of epoch %d: %s", has, mark.Edge, mark.Seq, mark.Epoch, remedy)
	case !gone && at.Epoch < head.Epoch && at.Epoch > deleted && head.Acked > 0:
		return refused("%s, and another ledger follows epoch %d, which redis has, up to entry %d: %s", has, head.Epoch, head.Acked, remedy)
	case gone && seen.Epoch > at.Epoch && seen.Epoch > deleted:
		return refused("%s, and this edge has seen epoch %d up to entry %d, which redis has lost and this ledger never had: if another edge's ledger has it, %s", has, seen.Epoch, number, remedy)
	}
	return nil
}
