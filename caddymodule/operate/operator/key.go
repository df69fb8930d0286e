package operator

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// beginsAnew says what a new identity secret costs.
const beginsAnew = "the identity secret is lost with the old key: purchase limits and unpaid holds count from 0 again, so buyers who have bought may buy again, " +
	"lists in redis match nothing until they are imported again, and idempotency keys and refs of before are unknown"

// replaceKey registers this edge's key in the place of a lost one.
func replaceKey(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	var asked adminapi.KeyReplacement
	if err := request.JSON(r, serve.SmallBody, &asked); err != nil {
		return nil, err
	}
	var old *shard.SigningKey
	if asked.OldKey != "" {
		var err error
		if old, err = edgeruntime.LostKey(asked.OldKey); err != nil {
			return nil, request.Bad("the old key cannot be read: %w", err)
		}
	}
	if old == nil && !asked.BeginAnew {
		return nil, shard.Refused("%s. Restore the old key if there is a copy of it, or accept that with --begin-anew (begin_anew in a request)", beginsAnew)
	}
	if err := alone(o, asked.Force); err != nil {
		return nil, err
	}
	lost, err := o.Runtime.ReplaceKey(o.Ctx, old)
	if err = o.Noted(err, "signing key replaced", zap.String("lost", lost), zap.Bool("secret_kept", old != nil)); err != nil {
		return nil, err
	}
	n, err := o.Runtime.Enrolment(o.Ctx)
	return adminapi.KeyReplaced{Lost: lost, Key: n.Signing, SecretKept: old != nil}, err
}

// alone refuses while other edges listen on this Redis: they may sign with the registered key,
// and would be locked out.
func alone(o *serve.Operator, force bool) error {
	if force || o.App.RedisOptions().Cluster || o.Runtime.IsLocal() {
		return nil
	}
	n, err := o.Runtime.Store.Shard().Listeners(o.Ctx)
	if err != nil {
		return err
	}
	if n > 1 {
		return shard.Refused("%d edges listen on this redis: one of them may have the registered key, and would not sell any more. Give this edge that key; or stop them, or use force", n)
	}
	return nil
}
