package dashboard

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
)

// accountsOf returns the names of the accounts of a server's authentication handlers, if all of them are basic_auth; nil:
// there are other ones, whose users are not known here.
func accountsOf(server *caddyhttp.Server) map[string]bool {
	all := make(map[string]bool)
	for _, list := range routesOf(server) {
		for i := range list {
			for _, h := range list[i].Handlers {
				a, ok := h.(*caddyauth.Authentication)
				if ok && !ofProviders(a.Providers, all) {
					return nil
				}
			}
			if !ofRaw(list[i].HandlersRaw, all) {
				return nil
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// ofProviders adds the accounts of providers that are provisioned; false: one is not basic_auth.
func ofProviders(providers map[string]caddyauth.Authenticator, all map[string]bool) bool {
	for _, p := range providers {
		switch basic := p.(type) {
		case caddyauth.HTTPBasicAuth:
			maps.Copy(all, named(basic.Accounts))
		case *caddyauth.HTTPBasicAuth:
			maps.Copy(all, named(basic.Accounts))
		default:
			return false
		}
	}
	return true
}

func named(accounts map[string]caddyauth.Account) map[string]bool {
	names := make(map[string]bool)
	for name := range accounts {
		names[name] = true
	}
	return names
}

// ofRaw adds the accounts of handlers that are not provisioned; false: one has another provider.
func ofRaw(handlers []json.RawMessage, all map[string]bool) bool {
	for _, raw := range handlers {
		var h rawHandler
		if json.Unmarshal(raw, &h) != nil {
			return false
		}
		var providers map[string]json.RawMessage
		if h.Handler == "authentication" && json.Unmarshal(h.Providers, &providers) != nil {
			return false
		}
		for kind, provider := range providers {
			var basic caddyauth.HTTPBasicAuth
			if kind != "http_basic" || json.Unmarshal(provider, &basic) != nil {
				return false
			}
			for _, account := range basic.AccountList {
				name := caddy.NewReplacer().ReplaceKnown(account.Username, "")
				if strings.Contains(name, "{") {
					return false
				}
				all[name] = true
			}
		}
		for _, r := range h.Routes {
			if !ofRaw(r.Handle, all) {
				return false
			}
		}
	}
	return true
}
