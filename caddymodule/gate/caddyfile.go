package gate

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/accesslist"
	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadDirective reads a gate, and warns about settings that are allowed but rarely
// intended.
func ReadDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // the directive's name
	at := *h.Dispenser
	warn := directive.NewWarner(&h, "stockgate")
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, h.WrapErr(err)
	}
	gate := new(Gate)
	if err := gate.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	if err := gate.OneAtATime.Resolve(h); err != nil {
		return nil, err
	}
	if err := checkLists(h, gate); err != nil {
		return nil, err
	}
	if err := checkFast(h, &at, gate, matchers); err != nil {
		return nil, err
	}
	if err := directive.CheckTwice(h, &at, gate.Name, matchers); err != nil {
		return nil, err
	}
	if err := checkEarly(h, gate); err != nil {
		return nil, at.WrapErr(err)
	}
	if err := checkPlaces(h, gate); err != nil {
		return nil, err
	}
	warnCheck(warn, gate)
	warnMethod(warn, gate, matchers)
	warnExact(warn, gate, matchers)
	warnShaped(warn, gate)
	warnBuyer(warn, gate.Buyer)
	warnValues(warn, gate)
	warnIdentities(warn, gate)
	warnShared(warn, gate)
	warnJWKS(warn, gate.JWT)
	warnGuard(warn)
	return h.NewRoute(matchers, gate), nil
}

// checkLists checks that the global option defines a gate's lists. Without a global option
// the app may be configured elsewhere; it then reports the error when it loads.
func checkLists(h httpcaddyfile.Helper, g *Gate) error {
	global, ok := h.Option("stockgate").(httpcaddyfile.App)
	if !ok {
		return nil
	}
	var configured app.App
	if err := json.Unmarshal(global.Value, &configured); err != nil {
		return err
	}
	for _, uses := range []struct {
		option string
		names  []string
	}{{"deny", g.Deny}, {"allow", g.Allow}} {
		for _, name := range uses.names {
			if _, ok := configured.Lists[name]; !ok {
				return h.WrapErr(accesslist.Unknown(uses.option, name))
			}
		}
	}
	return nil
}

// Interface guard
var _ caddyfile.Unmarshaler = (*Gate)(nil)
