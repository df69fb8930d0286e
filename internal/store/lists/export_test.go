package lists

import (
	"context"

	"github.com/stockgate/stockgate/internal/store/identity"
)

// Scan calls yield with the keyed hashes of a list's entries, up to about ten thousand at a
// time, until yield fails. It may miss entries that are added meanwhile, and may include
// entries that are removed.
func (l *Lists) Scan(ctx context.Context, list string, yield func(keys [][16]byte) error) error {
	m, err := l.listMeta(ctx, list)
	if err != nil {
		return err
	}
	at := 0
	for at < listParts {
		var keys []identity.ListKey
		if keys, at, err = l.listRead(ctx, list, m.count, at); err != nil {
			return err
		}
		if err := yield(keys); err != nil {
			return err
		}
	}
	return nil
}
