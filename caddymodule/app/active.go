package app

import "github.com/caddyserver/caddy/v2"

// Active returns the app of the configuration that runs; nil: none. During a reload it is the
// previous one, until all apps of the new one have started.
func Active() *App {
	loaded, err := caddy.ActiveContext().AppIfConfigured("stockgate")
	if err != nil {
		return nil
	}
	return loaded.(*App)
}
