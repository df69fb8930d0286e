package app

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// readList reads a named list.
func (a *App) readList(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 2, 3)
	if err != nil {
		return err
	}
	name, s := args[0], accesslist.Source{Source: args[1]}
	switch {
	case s.Source != accesslist.FileSource && s.Source != accesslist.RedisSource:
		return d.Errf("list %s: there is no source %q: write `%s`", name, s.Source, usage)
	case len(args) == 3:
		s.Path = args[2]
	}
	if err := s.Check(name); err != nil {
		return d.WrapErr(err)
	}
	if _, twice := a.Lists[name]; twice {
		return d.Errf("list %s is given twice: each list has a name of its own", name)
	}
	if a.Lists == nil {
		a.Lists = make(map[string]accesslist.Source)
	}
	a.Lists[name] = s
	return nil
}
