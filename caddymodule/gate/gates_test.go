package gate

import (
	"strings"
	"testing"

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
	with := func(o selling.SellingOptions) *Gate { return &Gate{SellingOptions: o} }
	named := func(o selling.SellingOptions) *Gate {
		return &Gate{AttemptOptions: option.AttemptOptions{Name: "main"}, SellingOptions: o}
	}
	for _, c := range []struct {
		name string
		a, b *Gate
		says string
	}{
		{"none", &Gate{}, &Gate{}, ""},
		{"keep is the default", &Gate{}, with(selling.SellingOptions{InDoubt: new(probe.InDoubt)}), ""},
		{"the same", with(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), with(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), ""},
		{"two shops", with(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), with(selling.SellingOptions{InDoubt: ask("http://b/{id}")}), "two gates without a name"},
		{"one keeps", with(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), &Gate{}, "two gates without a name"},
		{"named alike", named(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), named(selling.SellingOptions{}), "two gates named main"},
		{"one named", named(selling.SellingOptions{InDoubt: ask("http://a/{id}")}), &Gate{}, ""},
		{"answers differ", with(selling.SellingOptions{InDoubt: ask("http://a/{id}"), Answers: there("a")}), with(selling.SellingOptions{InDoubt: ask("http://a/{id}"), Answers: there("b")}), "two gates without a name"},
	} {
		gs := new(Gates)
		if err := gs.add(c.a); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		err := gs.add(c.b)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, it should say %q", c.name, err, c.says)
		}
	}
}
