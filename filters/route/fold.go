package route

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names that differ only in case are one name to some parsers and two to others (Go's
// encoding/json ignores case, most others do not). This file says which names are.

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

// Fold folds every rune of a name: equal results are one name to some server.
func Fold(s string) string { return strings.Map(foldRune, s) }

// SameFold tells whether two names fold to the same one, without an allocation.
func SameFold[A, B string | []byte](one A, other B) bool {
	for i, j := 0, 0; ; {
		if i == len(one) || j == len(other) {
			return i == len(one) && j == len(other)
		}
		if a, b := one[i], other[j]; a < utf8.RuneSelf && b < utf8.RuneSelf {
			if foldRune(rune(a)) != foldRune(rune(b)) {
				return false
			}
			i, j = i+1, j+1
			continue
		}
		// A rune is decoded from at most four bytes, so these copies stay small.
		a, n := utf8.DecodeRuneInString(string(one[i:min(i+utf8.UTFMax, len(one))]))
		b, m := utf8.DecodeRuneInString(string(other[j:min(j+utf8.UTFMax, len(other))]))
		if foldRune(a) != foldRune(b) {
			return false
		}
		i, j = i+n, j+m
	}
}
