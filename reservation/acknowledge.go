package reservation

import (
	"context"
	"strconv"

	"github.com/stockgate/stockgate/lua"
)

// Acknowledge notes that a ledger has a sale's journal up to an entry: what is before
// it may be trimmed. It never goes back.
func (s *Store) Acknowledge(ctx context.Context, sale string, epoch, seq int64) error {
	replies, err := s.run(ctx, s.scripts.Settle, sale, operation{"acknowledge", []any{epoch, seq}})
	if err != nil {
		return err
	}
	switch code := replies[0].code(); code {
	case lua.OK:
		return nil
	case lua.Conflict:
		return &GapError{Sale: sale, Want: replies[0].number(1) + 1}
	default:
		return refused("sale %s in redis is not the one that the ledger follows (%s)", sale, code)
	}
}

// SaleDocument reads a sale's file as it is stored, its version and its status.
func (s *Store) SaleDocument(ctx context.Context, sale string) (version int64, status, file string, err error) {
	v, err := s.redis.HMGet(ctx, s.shardKeys(sale)[metaKey], "version", "status", "doc").Result()
	if err != nil {
		return 0, "", "", explain(err)
	}
	text, _ := v[0].(string)
	version, _ = strconv.ParseInt(text, 10, 64)
	status, _ = v[1].(string)
	file, ok := v[2].(string)
	if !ok {
		return 0, "", "", ErrNoSale
	}
	return version, status, file, nil
}
