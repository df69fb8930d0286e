package gate_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/gate"
	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/gate/option/probe"
	"github.com/stockgate/stockgate/caddymodule/gate/selling"
	"github.com/stockgate/stockgate/filters/outcome"
)

// A hold has the name of its gate: two gates with one name must probe alike.
func TestGatesOfOneNameProbeAlike(t *testing.T) {
	ask := func(url string) *probe.InDoubt { return &probe.InDoubt{Probe: url} }
	there := func(path string) map[string]outcome.AnswerMatcher {
		return map[string]outcome.AnswerMatcher{"there": {JSON: []outcome.JSONTest{{Path: path}}}}
	}
	with := func(o selling.SellingOptions) *gate.Gate { return &gate.Gate{SellingOptions: o} }
	named := func(o selling.SellingOptions) *gate.Gate {
		return &gate.Gate{AttemptOptions: option.AttemptOptions{Name: "main"}, SellingOptions: o}
	}
	for _, c := range []struct {
		name string
		a, b *gate.Gate
		says string
	}{
		{"none", &gate.Gate{}, &gate.Gate{}, ""},
		{"keep is the default", &gate.Gate{}, with(selling.SellingOptions{InDoubt: new(probe.InDoubt)}), ""},
		{"the same", with(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), with(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), ""},
		{"two shops", with(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), with(selling.SellingOptions{InDoubt: ask("http://b/{id}")}), "two gates without a name"},
		{"one keeps", with(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), &gate.Gate{}, "two gates without a name"},
		{"named alike", named(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), named(selling.SellingOptions{}), "two gates named main"},
		{"one named", named(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), &gate.Gate{}, ""},
		{"answers differ", with(selling.SellingOptions{InDoubt: ask("http://a/{id}"), Answers: there("a")}), with(selling.SellingOptions{InDoubt: ask("http://a/{id}"), Answers: there("b")}), "two gates without a name"},
	} {
		gs := new(gate.Gates)
		if err := gs.Add(c.a); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		err := gs.Add(c.b)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, it should say %q", c.name, err, c.says)
		}
	}
}
