package shard

import (
	"context"
	"fmt"

	"github.com/stockgate/stockgate/internal/store/identity"
	"github.com/stockgate/stockgate/lua"
)

// Rekey registers key in the place of the registered key lost, which no edge has any more. With
// old, a copy of that key, the identity secret stays, and with it everything that is counted by
// identity. Without it there is a new secret: purchase limits, unpaid holds and lists in Redis
// start over. The error wraps ErrRefused if another key than lost is registered.
func (s *Client) Rekey(ctx context.Context, key SigningKey, lost string, old *SigningKey) error {
	secret := key.proposal()
	if old != nil {
		kept, err := s.secretOf(ctx, old)
		if err != nil {
			return err
		}
		secret = kept
	}
	raw, err := s.Eval(ctx, lua.Rekey, []string{s.SecretKey()}, []any{lost, key.KID, key.seal(secret), key.JWK}, s.Options.ReplicaAcks)
	if err != nil {
		return err
	}
	switch r := Reply(raw); r.Code() {
	case lua.OK:
		return nil
	case lua.Conflict:
		return Refused("the key %s is registered meanwhile, not %s: ask again", r.Text(1), lost)
	default:
		return fmt.Errorf("%w: rekey gave %q", ErrUnavailable, r.Code())
	}
}

// secretOf opens the identity secret with a key.
func (s *Client) secretOf(ctx context.Context, k *SigningKey) (*identity.Secret, error) {
	all, err := s.Keyring(ctx)
	if err != nil {
		return nil, err
	}
	sealed, ok := all["secret:"+k.KID]
	if !ok {
		return nil, Refused("redis has no identity secret for the key %s: it is not the one that is registered", k.KID)
	}
	return k.open(sealed)
}
