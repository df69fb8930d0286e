package shard

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// LineLook is whether there is something to do in a sale's line.
type LineLook struct {
	// Waiting is how many orders wait, AtShop how many are at the shop or have their turn.
	Waiting, AtShop int64
	Meta            Fields
}

// LookAtLines looks at the lines of sales in one round trip. Orders at the shop count up to a score.
func (s *Client) LookAtLines(ctx context.Context, sales []string, upTo string, fields ...string) ([]LineLook, error) {
	pipe, metas := behind(s.redis).Pipeline(), make([]*redis.SliceCmd, len(sales))
	counts := make([]*redis.IntCmd, 2*len(sales))
	for i, sale := range sales {
		keys := s.ShardKeys(sale)
		counts[2*i] = pipe.ZCard(ctx, keys[LineKey])
		counts[2*i+1] = pipe.ZCount(ctx, keys[AtShopKey], "-inf", upTo)
		metas[i] = pipe.HMGet(ctx, keys[MetaKey], fields...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, Explain(err)
	}
	looks := make([]LineLook, len(sales))
	for i := range looks {
		looks[i] = LineLook{counts[2*i].Val(), counts[2*i+1].Val(), metas[i].Val()}
	}
	return looks, nil
}

// QueueAnswer is the answer that is kept for an order's buyer, encrypted; nil: there is none.
func (s *Client) QueueAnswer(ctx context.Context, sale, id string) ([]byte, error) {
	return s.bytesOf(ctx, s.QueueAnswerKey(sale, id))
}
