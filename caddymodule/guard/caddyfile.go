package guard

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadDirective reads a guard. It takes no matcher, which would leave a way around the
// guard.
func ReadDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	guard := new(Guard)
	if err := guard.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	for _, door := range guard.Close {
		if err := door.resolve(h); err != nil {
			return nil, err
		}
	}
	return h.NewRoute(nil, guard), nil
}

// UnmarshalCaddyfile reads the guard. Syntax:
//
//	stockgate_guard {
//		allow_headers <name...>
//		close <path|@matcher...> [<status> [<body>]]
//	}
func (g *Guard) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("stockgate_guard protects the whole site: it takes no matcher and no arguments, found %q", d.Val())
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		"allow_headers": {Usage: "allow_headers <name...>", Read: directive.Texts(&g.AllowHeaders)},
		"close":         {Usage: closeUsage, Read: g.readClose, List: true},
	})
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Guard)(nil)
