package operator

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// forgetEdge ends the warning about an edge that does not come back.
func (o *operator) forgetEdge(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.Word("the edge", r.PathValue("edge"))
	if err != nil {
		return nil, err
	}
	silent, err := o.runtime.Leases().Forget(o.ctx, id)
	if !silent && err == nil {
		return adminapi.EdgeForgotten{ID: id}, nil
	}
	return adminapi.EdgeForgotten{ID: id, WasSilent: silent}, o.noted(err, "silent edge forgotten", zap.String("edge", id))
}
