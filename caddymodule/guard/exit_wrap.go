package guard

import (
	"bytes"
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/intercept"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"go.uber.org/zap"
)

// WatchExits puts an Exit around the transport of every reverse_proxy of a server, from
// Provision of one of its guards or gates: in main routes, error routes, named routes and
// the routes of answers.
//
// A reverse_proxy that is provisioned later gets it in its JSON, before Caddy reads that.
// So no running handler is changed: active health checks read the transport from the moment
// their reverse_proxy is provisioned.
func WatchExits(ctx caddy.Context, server *caddyhttp.Server) {
	if server == nil {
		return
	}
	w := exitWrapper{server, ctx.Logger()}
	for _, m := range ctx.Modules() { // modules that are being provisioned are not in the routes yet
		if sub, ok := m.(*caddyhttp.Subroute); ok {
			w.routes(sub.Routes)
			w.errors(sub.Errors)
		}
	}
	w.routes(server.Routes)
	w.errors(server.Errors)
	for _, named := range server.NamedRoutes {
		w.route(named)
	}
}

type exitWrapper struct {
	server *caddyhttp.Server
	log    *zap.Logger
}

func (w exitWrapper) errors(e *caddyhttp.HTTPErrorConfig) {
	if e != nil {
		w.routes(e.Routes)
	}
}

func (w exitWrapper) routes(routes caddyhttp.RouteList) {
	for i := range routes {
		w.route(&routes[i])
	}
}

func (w exitWrapper) route(r *caddyhttp.Route) {
	if r == nil {
		return
	}
	for i, raw := range r.HandlersRaw {
		r.HandlersRaw[i] = wrapRaw(raw)
	}
	for _, h := range r.Handlers {
		switch h := h.(type) {
		case *caddyhttp.Subroute:
			w.routes(h.Routes)
			w.errors(h.Errors)
		case *reverseproxy.Handler:
			w.proxy(h)
			w.answers(h.HandleResponse)
		case *intercept.Intercept:
			w.answers(h.HandleResponse)
		}
	}
}

func (w exitWrapper) answers(handlers []caddyhttp.ResponseHandler) {
	for i := range handlers {
		w.routes(handlers[i].Routes)
	}
}

// proxy wraps a transport that is already provisioned: its site comes before the guard's.
func (w exitWrapper) proxy(h *reverseproxy.Handler) {
	if _, ok := h.Transport.(*Exit); ok || h.Transport == nil {
		return
	}
	if h.HealthChecks != nil && h.HealthChecks.Active != nil && h.HealthChecks.Active.IsEnabled() {
		w.log.Warn("no second look at a reverse_proxy: its active health checks have begun; put stockgate_guard into its site too, before it",
			zap.Any("upstreams", h.Upstreams))
		return
	}
	h.Transport = NewExit(h.Transport, w.server, w.log)
}

// wrapRaw wraps the transport of each reverse_proxy in a handler's JSON.
func wrapRaw(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte("reverse_proxy")) {
		return raw
	}
	var handler any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&handler); err != nil || !wrapValue(handler) {
		return raw // Caddy reports what is wrong with it
	}
	wrapped, err := json.Marshal(handler)
	if err != nil {
		return raw
	}
	return wrapped
}

// wrapValue wraps in place, and reports whether there was anything to wrap.
func wrapValue(v any) (changed bool) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			changed = wrapValue(one) || changed
		}
	case map[string]any:
		for _, one := range v {
			changed = wrapValue(one) || changed
		}
		if v["handler"] != "reverse_proxy" {
			break
		}
		inner, ok := v["transport"].(map[string]any)
		if !ok {
			inner = map[string]any{"protocol": "http"}
		}
		if inner["protocol"] != "stockgate" {
			v["transport"] = map[string]any{"protocol": "stockgate", "inner": inner}
			changed = true
		}
	}
	return changed
}
