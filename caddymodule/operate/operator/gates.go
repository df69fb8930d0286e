package operator

import (
	"net/http"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/try"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func (o *operator) listGates(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	list := adminapi.GateList{Gates: []adminapi.GateSummary{}}
	for _, g := range judge.Of(o.app).List() {
		list.Gates = append(list.Gates, adminapi.GateSummary{Name: g.Name, Check: g.OnlyChecks()})
	}
	return list, nil
}

// tryGate answers POST gates/{name}/try, and POST try for the only gate.
func (o *operator) tryGate(r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	g, err := judge.Of(o.app).Find(r.PathValue("name"))
	if err != nil {
		return nil, request.Bad("%w", err)
	}
	var t adminapi.TryRequest
	if err := request.JSON(r, adminapi.TryBody, &t); err != nil {
		return nil, err
	}
	return try.Try(o.ctx, g, &t)
}
