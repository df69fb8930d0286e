package caddymodule

import (
	"bytes"
	"net/netip"
	"net/url"
	"reflect"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"go.uber.org/zap"
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

// buyer warns of a buyer whom every client can choose.
func (w warner) buyer(values []string) {
	for _, v := range values {
		if strings.Contains(v, "{http.request.header.") || strings.Contains(v, "{header.") {
			w.warn("the buyer is taken from " + v + ", which a client can set to anything, and so buy without limit: " +
				"take him from your authentication, such as {http.auth.user.id}, or make sure that a proxy before this one sets the header")
			return
		}
	}
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
			if token.Line != line && token.Text == "stockgate" {
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
