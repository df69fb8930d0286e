package forward

import (
	"context"
	"maps"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Again returns a request that is forwarded once more, with variables of its own: reverse_proxy sets some, and a dial of
// the first time that goes on in the background reads the map of them.
func Again(r *http.Request) *http.Request { return r.WithContext(ownVars(r.Context())) }

// ownVars copies the variables of a request, in the state in which they are.
func ownVars(ctx context.Context) context.Context {
	if vars, ok := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		return context.WithValue(ctx, caddyhttp.VarsCtxKey, maps.Clone(vars))
	}
	return ctx
}
