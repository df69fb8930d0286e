package inquiry

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// LookupUsage is the syntax of the option lookup.
const LookupUsage = "lookup [GET|POST] <url> [<body>]"

// ReadLookup reads the option lookup.
func ReadLookup(into **Spec) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 1, 3)
		if err != nil {
			return err
		}
		spec := new(Spec)
		if err := spec.Read(d, args, usage); err != nil {
			return err
		}
		*into = spec
		return directive.ReadBlock(d, spec.Bounds())
	}
}

// Read reads the arguments of a question.
func (s *Spec) Read(d *caddyfile.Dispenser, args []string, usage string) error {
	s.Method = http.MethodGet
	if args[0] == http.MethodGet || args[0] == http.MethodPost {
		s.Method, args = args[0], args[1:]
	}
	switch {
	case len(args) == 0 || len(args) > 2:
		return d.Errf("wrong number of arguments: write `%s`", usage)
	case len(args) == 2:
		s.Body = args[1]
	}
	s.URL = args[0]
	return nil
}

// Bounds returns the options that bound questions, by their names in a Caddyfile.
func (s *Spec) Bounds() map[string]directive.Option {
	return map[string]directive.Option{
		"at_once": {Usage: "at_once <number>", Read: directive.Count(&s.AtOnce)},
		"queue":   {Usage: "queue <number>", Read: directive.Count(&s.Queue)},
		"wait":    {Usage: "wait <duration>", Read: directive.Duration(&s.Wait)},
		"timeout": {Usage: "timeout <duration>", Read: directive.Duration(&s.Timeout)},
	}
}
