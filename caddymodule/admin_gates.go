package caddymodule

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// tryBody bounds the body of a trial in bytes: a request and an answer, in base64.
const tryBody = 8 << 20

// gateSummary is a gate in the list of all.
type gateSummary struct {
	Name  string `json:"name"`
	Check bool   `json:"check"`
}

// gateList answers GET gates.
type gateList struct {
	Gates []gateSummary `json:"gates"`
}

func (o *operator) listGates(r *http.Request) (any, error) {
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	list := gateList{Gates: []gateSummary{}}
	for _, g := range o.app.gates.list() {
		list.Gates = append(list.Gates, gateSummary{g.Name, g.Check})
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
	body, err := readBody(r, tryBody)
	if err != nil {
		return nil, err
	}
	var t trial
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return nil, badInput("the body cannot be read: %w", err)
	}
	return g.try(o.ctx, &t)
}
