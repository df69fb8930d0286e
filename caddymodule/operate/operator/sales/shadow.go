package sales

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
)

// forgetShadow drops what dry runs have noted of a sale.
func forgetShadow(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	if err := o.Known(id); err != nil {
		return nil, err
	}
	err = o.Runtime.Store.ForgetShadow(o.Ctx, id)
	return adminapi.ShadowForgotten{ID: id, Forgotten: true}, o.Noted(err, "shadow forgotten", zap.String("sale", id))
}
