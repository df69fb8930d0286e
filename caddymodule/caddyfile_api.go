package caddymodule

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("stockgate_api", readAPI)
	// It answers every request that reaches it, so it is among the last: a private
	// site may have routes of its own, the status and metrics beside it.
	httpcaddyfile.RegisterDirectiveOrder("stockgate_api", httpcaddyfile.After, "metrics")
}

// readAPI reads the handler of the shop's API.
func readAPI(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next() // the directive's name
	warn := newWarner(&h)
	h.Reset()
	warn.at.Directive = "stockgate_api"
	api := new(API)
	if err := api.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	warn.privacy()
	return api, nil
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
	err := readBlock(d, map[string]option{
		"key": {usage: "key <secret...>", read: a.readKeys, list: true},
	})
	if err == nil && len(a.Keys) == 0 {
		err = d.Errf("stockgate_api needs a key: write `key {env.STOCKGATE_API_KEY}`")
	}
	return err
}

func (a *API) readKeys(d *caddyfile.Dispenser, usage string) error {
	keys, err := arguments(d, usage, 1, -1)
	a.Keys = append(a.Keys, keys...)
	return err
}

// Interface guard
var _ caddyfile.Unmarshaler = (*API)(nil)
