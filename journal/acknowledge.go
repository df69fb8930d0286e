package journal

import (
	"context"
	"strconv"

	"github.com/stockgate/stockgate/lua"
	"github.com/stockgate/stockgate/shard"
)

// Acknowledge records that a ledger has a sale's journal up to an entry: what is before it may
// be trimmed. The position never goes back.
func (j *Journal) Acknowledge(ctx context.Context, sale string, epoch, seq int64) error {
	replies, err := j.shard.Run(ctx, sale, shard.Op(lua.Acknowledge, epoch, seq))
	if err != nil {
		return err
	}
	switch code := replies[0].Code(); code {
	case lua.OK:
		return nil
	case lua.Conflict:
		return &GapError{Sale: sale, Want: replies[0].Number(1) + 1}
	default:
		return shard.Refused("sale %s in redis is not the one that the ledger follows (%s)", sale, code)
	}
}

// SaleDocument reads a sale's file as it is stored, its version and its status.
func (j *Journal) SaleDocument(ctx context.Context, sale string) (version int64, status, file string, err error) {
	v, err := j.shard.Redis.HMGet(ctx, j.shard.ShardKeys(sale)[shard.MetaKey], "version", "status", "doc").Result()
	if err != nil {
		return 0, "", "", shard.Explain(err)
	}
	text, _ := v[0].(string)
	version, _ = strconv.ParseInt(text, 10, 64)
	status, _ = v[1].(string)
	file, ok := v[2].(string)
	if !ok {
		return 0, "", "", shard.ErrNoSale
	}
	return version, status, file, nil
}
