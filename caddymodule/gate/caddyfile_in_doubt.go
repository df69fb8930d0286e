package gate

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/probe"
	"github.com/stockgate/stockgate/outcome"
)

const inDoubtUsage = "in_doubt keep | probe <url>"

// readInDoubt reads what happens to holds in doubt.
func (rs *gateRules) readInDoubt(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 2)
	if err != nil {
		return err
	}
	in := new(probe.InDoubt)
	rs.gate.InDoubt = in
	switch kind, url := args[0], args[1:]; {
	case kind == "keep" && len(url) == 0:
		return nil
	case kind == "keep":
		return d.Errf("in_doubt keep takes no URL: write `%s`", usage)
	case kind != "probe":
		return d.Errf("in_doubt %q: write `%s`", kind, usage)
	case len(url) == 0:
		return d.Errf("in_doubt probe has no URL: write `%s`", usage)
	default:
		in.Probe = url[0]
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		"confirm": {Usage: "confirm <code|class|@name...>", Read: rs.readInto("in_doubt confirm", "confirm", &in.Rules), List: true},
		"release": {Usage: "release <code|class|@name...>", Read: rs.readInto("in_doubt release", "release", &in.Rules), List: true},
		"every":   {Usage: "every <duration>", Read: directive.Duration(&in.Every)},
		"longest": {Usage: "longest <duration>", Read: directive.Duration(&in.Longest)},
		"tries":   {Usage: "tries <number>", Read: directive.Count(&in.Tries)},
		"timeout": {Usage: "timeout <duration>", Read: directive.Duration(&in.Timeout)},
		"header":  {Usage: "header <field> <value>", Read: readProbeHeader(in), List: true},
	})
}

// readInto reads one rule and appends it to a list; what names it in an error.
func (rs *gateRules) readInto(what, then string, into *[]outcome.Rule) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 1, -1)
		if err != nil {
			return err
		}
		for _, word := range args {
			if name, ok := strings.CutPrefix(word, "@"); ok {
				rs.named = append(rs.named, namedAnswer{*d, what, name})
			}
		}
		*into = append(*into, outcome.Rule{Outcome: then, When: args})
		return nil
	}
}

// readProbeHeader reads a header of the probe's requests.
func readProbeHeader(in *probe.InDoubt) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 2, 2)
		if err != nil {
			return err
		}
		field := http.CanonicalHeaderKey(args[0])
		if _, twice := in.Header[field]; twice {
			return d.Errf("header %s is given twice: write it once", field)
		}
		if in.Header == nil {
			in.Header = make(map[string]string)
		}
		in.Header[field] = args[1]
		return nil
	}
}
