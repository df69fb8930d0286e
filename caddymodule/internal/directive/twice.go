package directive

import (
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

// CheckTwice refuses a second gate of the same name and matcher in the same block: a request
// would meet both, one after the other.
func CheckTwice(h httpcaddyfile.Helper, at *caddyfile.Dispenser, name string, matchers caddy.ModuleMap) error {
	block := BlockOf(&h)
	if block == nil || len(block.Segments) == 0 || len(block.Segments[0]) == 0 || len(block.Keys) == 0 || h.State == nil {
		return nil
	}
	parent, found := enclosing(block.Segments, at.File(), at.Line(), "")
	if !found {
		return nil
	}
	match, err := json.Marshal(matchers)
	if err != nil {
		return err
	}
	site := block.Keys[0] // not its first directive, which several sites may import
	key := fmt.Sprintf("stockgate.gate %s:%d %s %s %q %s", site.File, site.Line, site.Text, parent, name, match)
	if first, twice := h.State[key].(int); twice {
		which := "without a name"
		if name != "" {
			which = "named " + name
		}
		return at.Errf("there is a gate %s for the same requests at line %d: each would be reserved by both; remove one, or give them matchers that differ", which, first)
	}
	h.State[key] = at.Line()
	return nil
}

// enclosing finds the block whose directive begins at a line, and names it by where it begins.
func enclosing(segments []caddyfile.Segment, file string, line int, parent string) (string, bool) {
	for _, s := range segments {
		if len(s) > 0 && s[0].File == file && s[0].Line == line {
			return parent, true
		}
		if s.Directive() != "route" && s.Directive() != "handle" || len(s) == 0 {
			continue
		}
		if in, found := enclosing(Subdirectives(s), file, line, fmt.Sprintf("%s:%d", s[0].File, s[0].Line)); found {
			return in, true
		}
	}
	return "", false
}
