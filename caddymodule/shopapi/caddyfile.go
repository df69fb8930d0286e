package shopapi

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadDirective reads the handler of the shop's API.
func ReadDirective(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next() // the directive's name
	warn := directive.NewWarner(&h, "stockgate_api")
	h.Reset()
	api := new(API)
	if err := api.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	warnPrivacy(warn)
	return api, nil
}

// warnPrivacy warns of a shop's API that buyers can reach: one on the site of a gate.
func warnPrivacy(w directive.Warner) {
	block := w.Block()
	if block == nil {
		return
	}
	for _, segment := range block.Segments {
		line := -1
		for _, token := range segment {
			if token.Line != line && (token.Text == "stockgate" || token.Text == "stockgate_check") {
				w.Warn("the site has a gate too, so buyers can reach the shop's API, and its key alone keeps them from confirming what they like: " +
					"give the API a site of its own on a private address, such as http://10.0.0.1:8444")
				return
			}
			line = token.Line
		}
	}
}

// UnmarshalCaddyfile reads the shop's API. Syntax:
//
//	stockgate_api [<matcher>] {
//		key <secret...>
//	}
func (a *API) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		return d.Errf("stockgate_api takes no arguments besides a matcher, found %q", d.Val())
	}
	err := directive.ReadBlock(d, map[string]directive.Option{
		"key": {Usage: "key <secret...>", Read: a.readKeys, List: true},
	})
	if err == nil && len(a.Keys) == 0 {
		err = d.Errf("stockgate_api needs a key: write `key {env.STOCKGATE_API_KEY}`")
	}
	return err
}

func (a *API) readKeys(d *caddyfile.Dispenser, usage string) error {
	keys, err := directive.Arguments(d, usage, 1, -1)
	a.Keys = append(a.Keys, keys...)
	return err
}

// Interface guard
var _ caddyfile.Unmarshaler = (*API)(nil)
