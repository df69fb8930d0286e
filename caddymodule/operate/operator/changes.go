package operator

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
)

// changes are the routes that Changes serves.
var changes = []string{
	"POST /stockgate/sales/{id}/open",
	"POST /stockgate/sales/{id}/pause",
	"POST /stockgate/sales/{id}/close",
	"POST /stockgate/sales/{id}/waitlist/pause",
	"POST /stockgate/sales/{id}/waitlist/resume",
	"POST /stockgate/sales/{id}/items/{sku}/stock",
	"POST /stockgate/sales/{id}/holds/confirm",
	"POST /stockgate/sales/{id}/holds/release",
	"POST /stockgate/sales/{id}/holds/names",
	"POST /stockgate/reservations/{id}/confirm",
	"POST /stockgate/reservations/{id}/release",
}

// Changes returns a handler of those requests of the admin API that change sales and holds,
// for pages outside of the admin endpoint. Errors are JSON, as there. The caller has
// authenticated the user and calls WithUser; without a user the answer is 403.
func Changes() http.Handler {
	mux := http.NewServeMux()
	for _, route := range (AdminAPI{}).Routes() {
		if slices.Contains(changes, route.Pattern) {
			mux.Handle(route.Pattern, userHandler{route.Handler})
		}
	}
	return mux
}

// WithUser returns the request as made by an authenticated user, whom the log and the
// journal will name. It does not keep what the client says of itself.
func WithUser(r *http.Request, user string) *http.Request {
	user = adminapi.PlainText(user, 64)
	r = r.Clone(serve.WithUser(r.Context(), user))
	r.Header.Set(adminapi.ByHeader, user)
	r.TLS = nil // the user may be another one than the certificate's
	return r
}

// userHandler serves a route of the admin endpoint to a user.
type userHandler struct{ caddy.AdminHandler }

func (h userHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error = caddy.APIError{HTTPStatus: http.StatusForbidden, Message: "the request has no user"}
	if serve.User(r.Context()) != "" {
		err = h.AdminHandler.ServeHTTP(w, r)
	}
	if err == nil {
		return
	}
	status, message := http.StatusInternalServerError, err.Error()
	if api, ok := errors.AsType[caddy.APIError](err); ok {
		status, message = api.HTTPStatus, api.Message
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}
