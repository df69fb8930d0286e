package directive

import (
	"reflect"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"go.uber.org/zap"
)

// Warner warns about one gate, or the shop's API, while its Caddyfile is adapted: `caddy
// adapt` prints the warnings, and the admin API returns them.
type Warner struct {
	helper *httpcaddyfile.Helper
	at     caddyconfig.Warning // file, line and name of the directive
}

// NewWarner takes the directive's position from h, which is at its name.
func NewWarner(h *httpcaddyfile.Helper, directive string) Warner {
	return Warner{h, caddyconfig.Warning{File: h.File(), Line: h.Line(), Directive: directive}}
}

// Option returns a global option.
func (w Warner) Option(name string) any { return w.helper.Option(name) }

// Block returns the site or the named route that contains the directive; nil: unknown.
func (w Warner) Block() *caddyfile.ServerBlock { return BlockOf(w.helper) }

// BlockOf returns the site or the named route that contains a directive; nil: unknown.
func BlockOf(h *httpcaddyfile.Helper) *caddyfile.ServerBlock {
	return private[caddyfile.ServerBlock](h, "parentBlock")
}

// Subdirectives returns the subdirectives in a directive's block; none if it has a matcher.
// When Caddy has read a matcher, it deletes it from the tokens in place: the remaining
// braces do not balance, because the last one is there twice.
func Subdirectives(s caddyfile.Segment) []caddyfile.Segment {
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

// Warn adds to the warnings of the adaptation, or logs if a newer Caddy keeps them
// elsewhere.
func (w Warner) Warn(message string) {
	w.at.Message = message
	if list := private[*[]caddyconfig.Warning](w.helper, "warnings"); list != nil && *list != nil {
		**list = append(**list, w.at)
		return
	}
	caddy.Log().Named("stockgate").Warn(message, zap.String("file", w.at.File), zap.Int("line", w.at.Line))
}

// private returns a field of Caddy's Helper that has no method of its own; nil if there is
// none with that name and type. Caddy's own directives warn through these fields, and offer
// no other way.
func private[T any](h *httpcaddyfile.Helper, name string) *T {
	field := reflect.ValueOf(h).Elem().FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(field.Addr().UnsafePointer())
}
