package attempt

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stockgate/stockgate/route"
)

// Names that differ only in case are one name to some parsers and two to others (Go's
// encoding/json ignores case, most others do not), and PHP rewrites parameter names.
// This file decides which names are too similar to let both through.

// foldRune maps all runes that compare equal without regard to case to one rune; ASCII
// letters map to lower case. Upper and lower case are both applied because languages
// compare in either (Java finds ı, İ and i equal).
func foldRune(r rune) rune {
	if r >= utf8.RuneSelf {
		r = unicode.ToLower(unicode.ToUpper(r))
	}
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// fold folds every rune of a name.
func fold(s string) string { return strings.Map(foldRune, s) }

// sameFold tells whether a name folds to the given folded name.
func sameFold[T string | []byte](name T, folded string) bool {
	for i, j := 0, 0; ; {
		if i == len(name) || j == len(folded) {
			return i == len(name) && j == len(folded)
		}
		if a, b := name[i], folded[j]; a < utf8.RuneSelf && b < utf8.RuneSelf {
			if 'A' <= a && a <= 'Z' {
				a += 'a' - 'A'
			}
			if a != b {
				return false
			}
			i, j = i+1, j+1
			continue
		}
		// A rune is decoded from at most four bytes, so this copy stays small.
		a, n := utf8.DecodeRuneInString(string(name[i:min(i+utf8.UTFMax, len(name))]))
		b, m := utf8.DecodeRuneInString(folded[j:])
		if foldRune(a) != b {
			return false
		}
		i, j = i+n, j+m
	}
}

// foldParam is the folded form of a configured parameter name, as sameParam
// compares it.
func foldParam(name string) string {
	return fold(string(route.PHPName(nil, name)))
}

// sameParam tells whether some framework takes a parameter's name for the one
// whose folded form is given: by ignoring case, by PHP's mapping of variable
// names, or by reading brackets or a dot as an array, as PHP, Rack and qs do.
func sameParam(name, folded string) bool {
	if sameFold(name, folded) {
		return true
	}
	if !rewritten(name) {
		return false
	}
	var space [64]byte
	for _, form := range route.ParamForms(name) {
		if sameFold(route.PHPName(space[:0], form), folded) {
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
