package status

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// ReadDirective reads a status handler.
func ReadDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	status := new(Status)
	return status, status.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile reads the status handler. Syntax:
//
//	stockgate_status [<matcher>]
func (*Status) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("stockgate_status takes no arguments besides a matcher, found %q", d.Val())
	}
	if d.NextBlock(0) {
		return d.Errf("stockgate_status takes no block")
	}
	return nil
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Status)(nil)
