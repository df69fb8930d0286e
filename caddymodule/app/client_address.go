package app

import (
	"reflect"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
)

// chosenAddresses are the handlers of one configuration that use an address which a client can
// choose.
type chosenAddresses struct {
	mu  sync.Mutex
	all []string
}

// UsesAddress notes that a handler uses the client's address for uses, such as "rate", or that a
// matcher around it does, and warns where a client can choose that address. handler names the
// handler, such as "the gate main". It is for the time in which the handler is provisioned.
func (a *App) UsesAddress(ctx caddy.Context, log *zap.Logger, handler string, uses ...string) {
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	for _, name := range matchers.ReadingAddress(matchers.Around(ctx, server)) {
		uses = append(uses, "matcher "+name)
	}
	if len(uses) == 0 || !trustsWhatClientsSend(server) {
		return
	}
	finding := handler + " uses the client's address (" + strings.Join(uses, ", ") + "), and its server has `trusted_proxies` without `trusted_proxies_strict`: " +
		"behind a proxy that appends to X-Forwarded-For, a client that sends X-Forwarded-For itself chooses its address, and so avoids this or acts as another client; " +
		"add `trusted_proxies_strict` to the server's options, or name a header that the proxy overwrites with `client_ip_headers`"
	log.Warn(finding)
	a.chosen.mu.Lock()
	defer a.chosen.mu.Unlock()
	a.chosen.all = append(a.chosen.all, finding)
}

// ChosenAddresses returns the warnings of UsesAddress.
func (a *App) ChosenAddresses() []string {
	a.chosen.mu.Lock()
	defer a.chosen.mu.Unlock()
	return a.chosen.all[:len(a.chosen.all):len(a.chosen.all)]
}

// trustsWhatClientsSend reports whether a server takes the client's address from the left end
// of a header to which proxies append: what the client has sent comes first there.
func trustsWhatClientsSend(server *caddyhttp.Server) bool {
	if server == nil || server.TrustedProxiesStrict > 0 || !server.TrustedProxiesUnix && !hasTrustedProxies(server) {
		return false
	}
	first := "X-Forwarded-For" // Caddy's default
	if len(server.ClientIPHeaders) > 0 {
		first = server.ClientIPHeaders[0]
	}
	return strings.HasSuffix(strings.ToLower(first), "forwarded-for")
}

// hasTrustedProxies reports whether a server that is provisioned has `trusted_proxies`. Caddy
// keeps them in a field of its own and empties the public one, before it provisions handlers, and has no
// other way to read them. Where Caddy renames that field, TestChosenAddress fails.
func hasTrustedProxies(server *caddyhttp.Server) bool {
	field := reflect.ValueOf(server).Elem().FieldByName("trustedProxies")
	return len(server.TrustedProxiesRaw) > 0 || field.IsValid() && field.Kind() == reflect.Interface && !field.IsNil()
}
