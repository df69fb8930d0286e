package directive

import (
	"reflect"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"go.uber.org/zap"
)

// Warner warns about one gate, or the shop's API, while its Caddyfile is adapted:
// `caddy adapt` prints the warnings, the admin API answers with them.
type Warner struct {
	helper *httpcaddyfile.Helper
	at     caddyconfig.Warning // file, line and name of the directive
}

// NewWarner takes the directive's place from h, which stands at its name.
func NewWarner(h *httpcaddyfile.Helper, directive string) Warner {
	return Warner{h, caddyconfig.Warning{File: h.File(), Line: h.Line(), Directive: directive}}
}

// Option is a global option.
func (w Warner) Option(name string) any { return w.helper.Option(name) }

// Block is the site or the named route in which the directive stands; nil: it is not known.
func (w Warner) Block() *caddyfile.ServerBlock { return BlockOf(w.helper) }

// BlockOf is the site or the named route in which a directive stands; nil: it is not known.
func BlockOf(h *httpcaddyfile.Helper) *caddyfile.ServerBlock {
	return private[caddyfile.ServerBlock](h, "parentBlock")
}

// Subdirectives are those in a directive's block, none if it has a matcher. When Caddy
// has read a matcher it deletes it from the tokens in place: the braces that are left
// do not balance then, because the last one is there twice.
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

// Warn adds to the warnings of the adaptation, or logs, where a newer Caddy keeps
// them elsewhere.
func (w Warner) Warn(message string) {
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
