package operator

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// forgetShadow drops what dry runs have noted of a sale.
func (o *operator) forgetShadow(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	if err := o.known(id); err != nil {
		return nil, err
	}
	err = o.runtime.Store.ForgetShadow(o.ctx, id)
	return adminapi.ShadowForgotten{ID: id, Forgotten: true}, o.noted(err, "shadow forgotten", zap.String("sale", id))
}
