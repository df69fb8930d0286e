package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stockgate/stockgate/internal/edge"
	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// remindEvery is how often Redis is checked for the sales of the ledger.
const remindEvery = 2 * time.Second

// remind tells Redis, until ctx ends, which sales it must have, so that all edges
// notice a lost one.
func (d *Drainer) remind(ctx context.Context) {
	closed := make(map[string]bool)
	loop.Every(ctx, remindEvery, nil, func() {
		if err := d.Remind(ctx, closed); err != nil && ctx.Err() == nil {
			d.metrics.DrainFailed("ledger")
		}
	})
}

// Remind adds the ledger's sales that are missing from Redis's index of sales. A closed
// sale may have been deleted on purpose: closed remembers those.
func (d *Drainer) Remind(ctx context.Context, closed map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	if err := d.migrate(ctx); err != nil {
		return err
	}
	known, err := d.ledger.Sales(ctx)
	if err != nil || len(known) == 0 {
		return err
	}
	index, err := d.journals.Sales(ctx)
	if err != nil {
		return nil // the edge reports that Redis does not answer
	}
	var absent []string
	for _, id := range known {
		if _, named := slices.BinarySearch(index, id); named || closed[id] {
			continue
		}
		doc, err := d.ledger.Document(ctx, id)
		if err != nil {
			return err
		}
		if doc.Status == string(sale.Closed) {
			closed[id] = true
			continue
		}
		if deleted, err := d.isDeleted(ctx, id); err != nil {
			return err
		} else if deleted {
			continue
		}
		absent = append(absent, id)
	}
	_ = d.journals.Announce(ctx, absent...) // tried again
	return nil
}

// isDeleted reports whether the ledger still has a sale that was deleted on purpose since, perhaps
// before the ledger had heard that it was closed.
func (d *Drainer) isDeleted(ctx context.Context, id string) (bool, error) {
	at, err := d.ledger.Position(ctx, id)
	if err != nil {
		return false, err
	}
	deleted, err := d.journals.DeletedEpoch(ctx, id)
	return deleted >= at.Epoch, err
}

// gone says why Redis has nothing of a sale that its index names.
func (s *following) gone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	switch life, err := s.stock.Life(ctx, s.sale); {
	case err != nil:
		return s.failed("journal", err)
	case life.Restoring || life.Epoch != 0: // or it has just come back
		return shard.ErrNoSale
	}
	s.mark(ctx)
	return s.failed("journal", &edge.LostError{Sale: s.sale})
}

// mark tells the edges that have other ledgers what this one has of a lost sale. A failure is retried:
// the sale is polled as long as it is lost.
func (s *following) mark(ctx context.Context) {
	if at, err := s.ledger.Position(ctx, s.sale); err == nil && at.Epoch > 0 {
		_ = s.journals.MarkLedger(ctx, s.sale, journal.Mark{Epoch: at.Epoch, Seq: at.Seq, Edge: s.owner})
	}
}

func lost(err error) bool {
	_, yes := errors.AsType[*edge.LostError](err)
	return yes
}
