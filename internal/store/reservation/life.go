package reservation

import (
	"context"
	"time"

	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/journal"
)

// Life is what Redis has of a sale.
type Life struct {
	// Epoch names the life; 0: Redis has nothing of the sale, or only a part of it.
	Epoch int64 `json:"epoch"`
	// Seq is the newest number in its journal.
	Seq     int64       `json:"seq"`
	Status  sale.Status `json:"status,omitempty"`
	Version int64       `json:"version,omitempty"`
	// Restoring says that a restoration has begun and is not finished.
	Restoring bool `json:"restoring,omitempty"`
	// HasPrevious says that Redis has a previous life that is not merged yet.
	// PreviousEpoch and PreviousStatus are its epoch and the sale's status in it.
	HasPrevious    bool        `json:"previous,omitempty"`
	PreviousEpoch  int64       `json:"-"`
	PreviousStatus sale.Status `json:"previous_status,omitempty"`
	// Now is the time of the sale's Redis.
	Now time.Time `json:"now"`
	// Continues is the life that this one goes on from, such as after a restore from a backup; zero: none.
	Continues journal.Continued `json:"-"`
}

// Life reads what Redis has of a sale.
func (s *Store) Life(ctx context.Context, id string) (Life, error) {
	if err := s.shard.ReadTime(ctx, id); err != nil {
		return Life{}, err
	}
	meta, err := s.shard.Data(id).Meta(ctx, "epoch", "seq", "status", "version", "restoring", "merging", "continues")
	if err != nil {
		return Life{}, err
	}
	previous, err := s.shard.Previous(id).Any(ctx)
	if err != nil {
		return Life{}, err
	}
	was, err := s.shard.Previous(id).Meta(ctx, "status", "epoch")
	if err != nil {
		return Life{}, err
	}
	l := Life{
		Epoch: meta.Number(0), Seq: meta.Number(1), Status: sale.Status(meta.Text(2)), Version: meta.Number(3), Restoring: meta.Has(4),
		HasPrevious: previous || meta.Has(5), PreviousEpoch: was.Number(1), PreviousStatus: sale.Status(was.Text(0)), Now: s.Now(id),
	}
	l.Continues = journal.ContinuedOf(meta.Text(6))
	return l, nil
}
