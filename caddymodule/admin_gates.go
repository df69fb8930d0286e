package caddymodule

import (
	"net/http"

	"github.com/stockgate/stockgate/caddymodule/adminapi"
)

func (o *operator) listGates(r *http.Request) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	list := adminapi.GateList{Gates: []adminapi.GateSummary{}}
	for _, g := range o.app.gates.list() {
		list.Gates = append(list.Gates, adminapi.GateSummary{Name: g.Name, Check: g.Check})
	}
	return list, nil
}

// tryGate answers POST gates/{name}/try, and POST try for the only gate.
func (o *operator) tryGate(r *http.Request) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	g, err := o.app.gates.find(r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	var t adminapi.TryRequest
	if err := readJSON(r, adminapi.TryBody, &t); err != nil {
		return nil, err
	}
	return g.try(o.ctx, &t)
}
