package app

import (
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

// ReadOption reads the global option into the app.
func ReadOption(d *caddyfile.Dispenser, earlier any) (any, error) {
	app := new(App)
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	if earlier != nil {
		return nil, d.Errf("the global option stockgate is given twice: write all of it in one block")
	}
	return httpcaddyfile.App{Name: "stockgate", Value: caddyconfig.JSON(app, nil)}, nil
}

// Interface guard
var _ caddyfile.Unmarshaler = (*App)(nil)
