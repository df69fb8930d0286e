package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/stockgate/stockgate/shard"
)

// Mark is the newest movement of a sale that some ledger has.
type Mark struct {
	Epoch, Seq int64
	// Edge names an edge whose ledger that is.
	Edge string
}

// After reports whether a mark is newer than a position.
func (m Mark) After(epoch, seq int64) bool {
	return m.Epoch > epoch || m.Epoch == epoch && m.Seq > seq
}

// MarkLedger notes, for edges with other ledgers, what the ledger of an edge has of a sale that Redis
// has lost: its meta, which says it otherwise, is gone. A newer mark stays.
func (j *Journal) MarkLedger(ctx context.Context, sale string, m Mark) error {
	have, err := j.LedgerMark(ctx, sale)
	if err != nil || !m.After(have.Epoch, have.Seq) {
		return err
	}
	return shard.Explain(j.shard.Redis.HSet(ctx, j.shard.LedgersKey(), sale, fmt.Sprint(m.Epoch, " ", m.Seq, " ", m.Edge)).Err())
}

// LedgerMark returns the newest mark of a sale; zero: there is none.
func (j *Journal) LedgerMark(ctx context.Context, sale string) (m Mark, err error) {
	text, err := j.shard.Redis.HGet(ctx, j.shard.LedgersKey(), sale).Result()
	if errors.Is(err, redis.Nil) {
		return m, nil
	}
	if err != nil {
		return m, shard.Explain(err)
	}
	if _, err := fmt.Sscan(text, &m.Epoch, &m.Seq, &m.Edge); err != nil {
		return Mark{}, fmt.Errorf("the mark of the ledgers of sale %s cannot be read: %w; delete the field %[1]s of the hash %s", sale, err, j.shard.LedgersKey())
	}
	return m, nil
}
