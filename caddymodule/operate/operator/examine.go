package operator

import (
	"net/http"
	"time"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/doctor"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
)

// examine answers with the doctor's findings.
func examine(o *serve.Operator, r *http.Request) (any, error) {
	query, err := request.Query(r, "older")
	if err != nil {
		return nil, err
	}
	doubt := doctor.Doubt
	if query.Has("older") {
		if doubt, err = time.ParseDuration(query.Get("older")); err != nil || doubt <= 0 {
			return nil, request.Bad("older must be a length of time such as 10m")
		}
	}
	return doctor.Examine(o.Ctx, o.App, o.Runtime, doubt), nil
}
