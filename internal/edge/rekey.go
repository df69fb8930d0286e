package edge

import (
	"context"

	"github.com/stockgate/stockgate/internal/store/shard"
)

// ReplaceKey registers this edge's signing key in the place of the registered one, which is
// lost. old is a copy of that key; nil: there is none, and everything that is counted by
// identity starts over. It returns the key that was registered. The error wraps
// shard.ErrRefused if this edge has the registered key.
func (e *Edge) ReplaceKey(ctx context.Context, old *shard.SigningKey) (lost string, err error) {
	n, err := e.Enrolment(ctx)
	switch {
	case err != nil:
		return "", err
	case n.Signing == "":
		return "", shard.Refused("no key is registered: this edge registers its own as soon as it may sell")
	case n.Known:
		return "", shard.Refused("this edge has the registered key %s: nothing is lost", n.Signing)
	}
	if err := e.shard.Rekey(ctx, e.keys[0], n.Signing, old); err != nil {
		return "", err
	}
	return n.Signing, e.Refresh(ctx)
}
