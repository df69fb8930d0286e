package caddymodule

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/attempt"
)

// warner warns about one gate, or the shop's API, while its Caddyfile is adapted:
// `caddy adapt` prints the warnings, the admin API answers with them.
type warner struct {
	helper *httpcaddyfile.Helper
	at     caddyconfig.Warning // file, line and name of the directive
}

// newWarner takes the directive's place from h, which stands at the directive's name.
func newWarner(h *httpcaddyfile.Helper) warner {
	return warner{h, caddyconfig.Warning{File: h.File(), Line: h.Line(), Directive: "stockgate"}}
}

// method warns of a gate that takes GET requests for attempts to buy.
func (w warner) method(matchers caddy.ModuleMap) {
	for name, raw := range matchers {
		nested := name == "not" || name == "expression"
		if name == "method" || nested && bytes.Contains(raw, []byte("method")) {
			return
		}
	}
	w.warn("no matcher restricts the method, so every matching request is an attempt to buy, a GET too: " +
		"add `method POST` to the gate's matcher")
}

// check warns of a gate that only checks by its former name.
func (w warner) check(g *Gate) {
	if g.Check {
		w.warn("check in a gate is now the directive stockgate_check: write `stockgate_check` in place of `stockgate`, without the option check")
	}
}

// buyer warns of a buyer whom every client can choose.
func (w warner) buyer(values []string) {
	at := slices.IndexFunc(values, byClient)
	if at < 0 {
		return
	}
	instead := ", or verify the shop's bearer token with jwt"
	if strings.Contains(values[at], "header.") {
		instead = ", or make sure that a proxy before this one sets the header"
	}
	w.warn("the buyer is taken from " + values[at] + ", which a client can set to anything, and so buy without limit: " +
		"take him from your authentication, such as {http.auth.user.id}" + instead)
}

// identities warns of a gate where no value is verified: a client can use up the limits
// of other persons, and that costs it nothing.
func (w warner) identities(g *Gate) {
	if len(g.Identities) == 0 || g.Check || verified(g.Buyer) {
		return
	}
	for _, values := range g.Identities {
		if verified(values) {
			return
		}
	}
	kinds := slices.Sorted(maps.Keys(g.Identities))
	w.warn("no identity of this gate is verified (" + strings.Join(kinds, ", ") + "), so a client can name other persons and use up their limits: " +
		"take the buyer from your authentication or from jwt, or add `identity ip {client_ip}`, and let limits count it too, such as `per: [" + kinds[0] + ", ip]`")
}

// shared warns of shared rates that are counted in the Redis of the stock.
func (w warner) shared(g *Gate) {
	if !slices.ContainsFunc(g.Rates, Rate.grows) {
		return
	}
	if global, ok := w.helper.Option("stockgate").(httpcaddyfile.App); ok {
		var app App
		if json.Unmarshal(global.Value, &app) != nil || app.RateRedis != nil {
			return
		}
	}
	w.warn("a shared rate has keys that clients choose, and each takes 200 bytes of the redis that holds the stock: " +
		"give the rates a redis of their own with `rate_redis` in the global options of stockgate")
}

// byClient says that a client can set a value to anything.
func byClient(expr string) bool {
	v, err := attempt.Compile(expr)
	return err == nil && v.ByClient()
}

// verified says that an identity has a value which no client chooses: of an
// authentication, of a bearer token, or the client's address.
func verified(values []string) bool {
	return len(values) > 0 && !slices.ContainsFunc(values, byClient)
}

// jwks warns of keys that anybody on the way can exchange for his own.
func (w warner) jwks(j *JWT) {
	if j == nil {
		return
	}
	u, err := url.Parse(j.JWKS)
	if err != nil || u.Scheme != "http" {
		return
	}
	host := u.Hostname()
	address, err := netip.ParseAddr(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.ContainsAny(host, "{}") || err == nil && address.IsLoopback() {
		return
	}
	w.warn("the keys of jwt are fetched from " + u.Redacted() + " without TLS: whoever stands in between can sign in as anybody: write https://")
}

// guard warns of a gate that a strange path can avoid. A named route is a block of
// its own: which sites invoke it is not known here.
func (w warner) guard() {
	block := private[caddyfile.ServerBlock](w.helper, "parentBlock")
	switch {
	case block == nil:
	case block.IsNamedRoute:
		// Its tokens are one directive, with the route's name.
		if len(block.Segments) == 0 || !hasGuard(directives(block.Segments[0])) {
			w.warn("this named route has no stockgate_guard: add it here, or make sure that each site which invokes the route has it")
		}
	case !hasGuard(block.Segments):
		w.warn("the site has no stockgate_guard for all its requests, so its gate can be avoided by paths that the shop reads otherwise: " +
			"add `stockgate_guard` to the site, outside of blocks that have a matcher")
	}
}

// privacy warns of a shop's API where buyers come: on the site of a gate.
func (w warner) privacy() {
	block := private[caddyfile.ServerBlock](w.helper, "parentBlock")
	if block == nil {
		return
	}
	for _, segment := range block.Segments {
		line := -1
		for _, token := range segment {
			if token.Line != line && (token.Text == "stockgate" || token.Text == "stockgate_check") {
				w.warn("the site has a gate too, so buyers can reach the shop's API, and its key alone keeps them from confirming what they like: " +
					"give the API a site of its own on a private address, such as http://10.0.0.1:8444")
				return
			}
			line = token.Line
		}
	}
}

// hasGuard looks for a guard that every request of a block meets: in the block
// itself, or in a route or handle there that has no matcher.
func hasGuard(block []caddyfile.Segment) bool {
	for _, s := range block {
		switch s.Directive() {
		case "stockgate_guard":
			return true
		case "route", "handle":
			if hasGuard(directives(s)) {
				return true
			}
		}
	}
	return false
}

// directives are those in a directive's block, none if it has a matcher. When Caddy
// has read a matcher it deletes it from the tokens in place: the braces that are left
// do not balance then, because the last one is there twice.
func directives(s caddyfile.Segment) []caddyfile.Segment {
	depth := 0
	for _, token := range s {
		switch token.Text {
		case "{":
			depth++
		case "}":
			depth--
		}
	}
	d := caddyfile.NewDispenser(s)
	d.Next()
	if depth != 0 || d.NextArg() {
		return nil
	}
	var list []caddyfile.Segment
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		list = append(list, d.NextSegment())
	}
	return list
}

// warn adds to the warnings of the adaptation, or logs, where a newer Caddy keeps
// them elsewhere.
func (w warner) warn(message string) {
	w.at.Message = message
	if list := private[*[]caddyconfig.Warning](w.helper, "warnings"); list != nil && *list != nil {
		**list = append(**list, w.at)
		return
	}
	caddy.Log().Named("stockgate").Warn(message, zap.String("file", w.at.File), zap.Int("line", w.at.Line))
}

// private is a field of Caddy's Helper that has no method of its own; nil if there
// is none with that name and type. Caddy's own directives warn through these fields,
// and offer no other way.
func private[T any](h *httpcaddyfile.Helper, name string) *T {
	field := reflect.ValueOf(h).Elem().FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(field.Addr().UnsafePointer())
}
