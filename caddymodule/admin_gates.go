package caddymodule

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/stockgate/stockgate/caddymodule/adminapi"
)

func (o *operator) listGates(r *http.Request) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	list := adminapi.GateList{Gates: []adminapi.GateSummary{}}
	for _, g := range gatesOf(o.app).list() {
		list.Gates = append(list.Gates, adminapi.GateSummary{Name: g.Name, Check: g.Check})
	}
	return list, nil
}

// tryGate answers POST gates/{name}/try, and POST try for the only gate.
func (o *operator) tryGate(r *http.Request) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	g, err := gatesOf(o.app).find(r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	body, err := readBody(r, adminapi.TryBody)
	if err != nil {
		return nil, err
	}
	var t adminapi.TryRequest
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return nil, badInput("the body cannot be read: %w", err)
	}
	return g.try(o.ctx, &t)
}
