package operator

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
)

// forgetEdge ends the warning about an edge that does not come back.
func forgetEdge(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.Word("the edge", r.PathValue("edge"))
	if err != nil {
		return nil, err
	}
	silent, err := o.Runtime.Leases().Forget(o.Ctx, id)
	if !silent && err == nil {
		return adminapi.EdgeForgotten{ID: id}, nil
	}
	return adminapi.EdgeForgotten{ID: id, WasSilent: silent}, o.Noted(err, "silent edge forgotten", zap.String("edge", id))
}
