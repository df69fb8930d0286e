package journal

import (
	"context"

	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

// Acknowledge records that a ledger has a sale's journal up to an entry: what is before it may
// be trimmed. The position never goes back, see lua/acknowledge.lua; ledger.Standing says what one
// ledger has now.
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
	meta, err := j.shard.Data(sale).Meta(ctx, "version", "status", "doc")
	if err != nil {
		return 0, "", "", err
	}
	if !meta.Has(2) {
		return 0, "", "", shard.ErrNoSale
	}
	return meta.Number(0), meta.Text(1), meta.Text(2), nil
}
