package operator

import (
	"net/http"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
)

func (o *operator) health(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	return o.app.Health(), nil
}
