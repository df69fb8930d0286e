package caddymodule

import "testing"

// GateNamed is a gate of the running configuration.
func GateNamed(t *testing.T, name string) *Gate {
	t.Helper()
	g, err := gatesOf(latest()).find(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
