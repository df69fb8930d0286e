package attempt

import (
	"unicode"
	"unicode/utf8"

	"github.com/stockgate/stockgate/filters/route"
)

// Names that differ only in case are one name to some parsers and two to others, and PHP
// rewrites parameter names. This file decides which names are too similar to let both through.

// foldParam is the folded form of a configured parameter name, as sameParam
// compares it.
func foldParam(name string) string {
	return route.Fold(string(route.PHPName(nil, name)))
}

// sameParam tells whether some framework takes a parameter's name for the one
// whose folded form is given: by ignoring case, by PHP's mapping of variable
// names, or by reading brackets or a dot as an array, as PHP, Rack and qs do.
func sameParam(name, folded string) bool {
	if route.SameFold(name, folded) {
		return true
	}
	if !rewritten(name) {
		return false
	}
	var space [64]byte
	for _, form := range route.ParamForms(name) {
		if route.SameFold(route.PHPName(space[:0], form), folded) {
			return true
		}
	}
	return false
}

// rewritten tells whether a name has any of the bytes that frameworks rewrite.
func rewritten(name string) bool {
	for i := range len(name) {
		switch name[i] {
		case ' ', '.', '[', ']', '\t', '\r', '\n', 0:
			return true
		}
	}
	return false
}

// plain tells whether s is UTF-8 without control characters.
func plain(s string) bool {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n <= 1 || unicode.IsControl(r) {
			return false
		}
		i += n
	}
	return true
}

// prototypeWhat says what is wrong with a name that leads to an object's prototype. No order needs
// one, so it is malformed wherever a source's value could be inherited from it.
const prototypeWhat = "it names a JavaScript object's prototype: __proto__, constructor or prototype"
