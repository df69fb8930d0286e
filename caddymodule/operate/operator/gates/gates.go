// Package gates serves requests of the admin API about the gates of an edge: their names, tries and bypasses.
package gates

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/gate/judge"
	"github.com/stockgate/stockgate/caddymodule/gate/try"
	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
)

// Routes returns the routes of requests about gates.
func Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		serve.Route("GET /stockgate/gates", listGates),
		serve.Route("POST /stockgate/gates/{name}/try", tryGate),
		serve.Route("POST /stockgate/try", tryGate),
		serve.Route("POST /stockgate/gates/{name}/bypass", beginBypass),
		serve.Route("POST /stockgate/bypass", beginBypass),
		serve.Route("DELETE /stockgate/gates/{name}/bypass", endBypass),
		serve.Route("DELETE /stockgate/bypass", endBypass),
		serve.Route("GET /stockgate/bypasses", listBypasses),
	}
}

func listGates(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	list := adminapi.GateList{Gates: []adminapi.GateSummary{}}
	for _, g := range judge.Of(o.App).List() {
		list.Gates = append(list.Gates, adminapi.GateSummary{Name: g.Name, Check: g.OnlyChecks()})
	}
	return list, nil
}

// tryGate answers POST gates/{name}/try, and POST try for the only gate.
func tryGate(o *serve.Operator, r *http.Request) (any, error) {
	if _, err := request.Query(r); err != nil {
		return nil, err
	}
	g, err := judge.Of(o.App).Find(r.PathValue("name"))
	if err != nil {
		return nil, request.Bad("%w", err)
	}
	var t adminapi.TryRequest
	if err := request.JSON(r, adminapi.TryBody, &t); err != nil {
		return nil, err
	}
	return try.Try(o.Ctx, g, &t)
}
