package dashboard

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadDirective reads a dashboard.
func ReadDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	s := new(Dashboard)
	return s, s.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile reads a dashboard. Syntax:
//
//	stockgate_dashboard [<matcher>] {
//		acts    [open] [pause] [close] [stock] [resolve]
//		origins <origin...>
//		unprotected
//	}
func (s *Dashboard) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("stockgate_dashboard takes no arguments besides a matcher, found %q", d.Val())
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		"acts":        {Usage: "acts [open] [pause] [close] [stock] [resolve]", Read: s.readActs},
		"origins":     {Usage: "origins <origin...>", Read: directive.Texts(&s.Origins)},
		"unprotected": {Usage: "unprotected", Read: directive.Flag(&s.Unprotected)},
	})
}

// readActs reads the option acts; without arguments it means all.
func (s *Dashboard) readActs(d *caddyfile.Dispenser, usage string) (err error) {
	s.Acts, err = directive.Arguments(d, usage, 0, len(acts))
	if err == nil && len(s.Acts) == 0 {
		s.Acts = acts
	}
	return err
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Dashboard)(nil)
