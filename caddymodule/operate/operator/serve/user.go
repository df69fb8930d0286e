package serve

import (
	"context"
	"net/http"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// userKey is the context key of the user whom a page has authenticated.
type userKey struct{}

// WithUser returns the context of a request that a page makes for a user.
func WithUser(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// User returns the user for whom a page makes a request; empty: it makes the request for no user.
func User(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}

// causeOf returns the cause of the reservations that a request settles.
func causeOf(r *http.Request) string {
	if user, ok := r.Context().Value(userKey{}).(string); ok {
		return adminapi.OperatorCause + ":" + user
	}
	return adminapi.OperatorCause + ":" + request.By(r)
}
