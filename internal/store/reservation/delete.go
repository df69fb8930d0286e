package reservation

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Delete removes a closed sale from Redis, with its reservations and its journal, so that its
// items are ordinary ones again. The error wraps shard.ErrRefused if the sale is not closed,
// if a hold is open or an order has no stock, or if the ledger or the outbox's receiver does
// not have all of its journal; force ignores these two. A deleted sale is not a lost one: its
// name and epoch are kept.
func (s *Store) Delete(ctx context.Context, id string, force bool) error {
	was, err := s.lifeOf(ctx, id)
	switch {
	case err != nil:
		return err
	case was.restoring:
		return shard.Refused("sale %s is being rebuilt: finish that first", id)
	case was.epoch == 0:
		return s.finishDelete(ctx, id)
	case was.status != string(sale.Closed): // before anything is noted
		return notClosed(id, was.status)
	}
	// first: an edge that misses the sale must know why
	if err := s.shard.NoteDeleted(ctx, id, was.epoch); err != nil {
		return err
	}
	arg := "0"
	if force {
		arg = "1"
	}
	replies, err := s.shard.RunReplicated(ctx, id, shard.Op(lua.Delete, arg, was.epoch))
	ran := !errors.Is(err, shard.ErrRestoring) && !errors.Is(err, shard.ErrNotSent) && !errors.Is(err, shard.ErrNewerSchema)
	if len(replies) == 0 && ran {
		return err // the same again finishes it
	}
	if err == nil && replies[0].Code() == lua.OK {
		return s.unname(ctx, id, was.epoch)
	}
	now, wrong := s.lifeOf(ctx, id)
	switch {
	case wrong != nil:
		return wrong
	case now.epoch == 0 && !now.restoring: // or another call has deleted it
		return errors.Join(err, s.unname(ctx, id, was.epoch))
	case now.deleted >= was.epoch: // which was loaded again since
		return s.journal.Announce(ctx, id)
	}
	if err := s.shard.DropDeleted(ctx, id); err != nil {
		return err
	}
	switch now, err := s.lifeOf(ctx, id); {
	case err != nil:
		return err
	case now.epoch == 0 && !now.restoring: // another call has deleted it since, whose note is gone now
		return s.unname(ctx, id, was.epoch)
	}
	if !ran {
		return err
	}
	if replies[0].Code() == lua.NoSale {
		return shard.Refused("sale %s was rebuilt meanwhile: look at it, and then delete it again", id)
	}
	return deleteRefused(id, replies[0])
}

// life is what Redis says of a sale that may be deleted.
type life struct {
	epoch, deleted int64 // 0: there is none
	restoring      bool
	status         string
}

func (s *Store) lifeOf(ctx context.Context, id string) (life, error) {
	meta, err := s.shard.Data(id).Meta(ctx, "epoch", "deleted", "restoring", "status")
	if err != nil {
		return life{}, err
	}
	return life{meta.Number(0), meta.Number(1), meta.Has(2), meta.Text(3)}, nil
}

// finishDelete answers a repeated call, and ends one that broke off after the sale was gone.
func (s *Store) finishDelete(ctx context.Context, id string) error {
	epoch, err := s.shard.DeletedEpoch(ctx, id)
	switch {
	case err != nil:
		return err
	case epoch == 0:
		return shard.ErrNoSale
	}
	return s.unname(ctx, id, epoch)
}

// unname takes a deleted sale out of the index, drops the counters of its stored answers, what
// dry runs have noted and the keys of its fence, and tells the edges.
func (s *Store) unname(ctx context.Context, id string, epoch int64) error {
	if err := s.shard.Unindex(ctx, id, epoch); err != nil {
		return err
	}
	switch now, err := s.lifeOf(ctx, id); {
	case err != nil:
		return err
	case now.restoring: // a rebuild of it has begun
		if err := s.shard.IndexSale(ctx, id); err != nil {
			return err
		}
	case now.epoch != 0: // it was loaded again meanwhile, and its name is in the index no more
		if err := s.journal.Announce(ctx, id); err != nil {
			return err
		}
	}
	return s.shard.AwaitReplicas(ctx)
}

func notClosed(id, status string) error {
	return shard.Refused("sale %s is %s: only a closed sale is deleted, see `caddy stockgate sale close %s`", id, status, id)
}

func deleteRefused(id string, r shard.Reply) error {
	switch r.Code() {
	case lua.Conflict:
		if status := r.Text(1); status != string(sale.Open) && status != string(sale.Paused) && status != string(sale.Draft) {
			return shard.Refused("sale %s is being rebuilt: finish that first", id)
		}
		return notClosed(id, r.Text(1))
	case lua.InUse:
		return shard.Refused("sale %s has %d open holds and %d orders without stock: resolve them first, `caddy stockgate holds %s` lists them", id, r.Number(1), r.Number(2), id)
	case lua.Short:
		return shard.Refused("the ledger or the outbox's receiver lacks %d movements of sale %s, which nothing has after it is deleted: wait, or use --force", r.Number(1), id)
	}
	return fmt.Errorf("%w: delete gave %q", shard.ErrUnavailable, r.Code())
}
