package reservation

import (
	"context"
	"strconv"
	"time"

	"github.com/stockgate/stockgate/sale"
	"github.com/stockgate/stockgate/shard"
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
	// PreviousStatus is the sale's status in it.
	HasPrevious    bool        `json:"aside,omitempty"`
	PreviousStatus sale.Status `json:"aside_status,omitempty"`
	// Now is the time of the sale's Redis.
	Now time.Time `json:"now"`
}

// Life reads what Redis has of a sale.
func (s *Store) Life(ctx context.Context, id string) (Life, error) {
	if err := s.shard.ReadTime(ctx, id); err != nil {
		return Life{}, err
	}
	v, err := s.shard.Redis.HMGet(ctx, s.shard.ShardKeys(id)[shard.MetaKey], "epoch", "seq", "status", "version", "restoring", "carrying").Result()
	if err != nil {
		return Life{}, shard.Explain(err)
	}
	aside, err := s.shard.Redis.Exists(ctx, s.shard.PreviousKeys(id)...).Result()
	if err != nil {
		return Life{}, shard.Explain(err)
	}
	was, err := s.shard.Redis.HMGet(ctx, s.shard.PreviousKeys(id)[shard.MetaKey], "status").Result()
	if err != nil {
		return Life{}, shard.Explain(err)
	}
	number := func(i int) int64 {
		text, _ := v[i].(string)
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	status, _ := v[2].(string)
	asideStatus, _ := was[0].(string)
	return Life{
		Epoch: number(0), Seq: number(1), Status: sale.Status(status), Version: number(3), Restoring: v[4] != nil,
		HasPrevious: aside > 0 || v[5] != nil, PreviousStatus: sale.Status(asideStatus), Now: s.Now(id),
	}, nil
}
