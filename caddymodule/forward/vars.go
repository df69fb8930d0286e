package forward

import (
	"context"
	"maps"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// ownVars copies the variables of a request. reverse_proxy sets some, and a dial that goes on in the background, of the
// first time that the request was sent, reads the map of them.
func ownVars(ctx context.Context) context.Context {
	if vars, ok := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		return context.WithValue(ctx, caddyhttp.VarsCtxKey, maps.Clone(vars))
	}
	return ctx
}
