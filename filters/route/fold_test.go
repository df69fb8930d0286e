package route_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stockgate/stockgate/filters/route"
)

// Each language's way to compare without regard to case is covered.
func TestSameFold(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		one := string(r)
		for _, other := range []string{strings.ToLower(one), strings.ToUpper(one), string(unicode.SimpleFold(r)), route.Fold(one)} {
			if !route.SameFold("a"+one+"b", "A"+other+"B") || !route.SameFold([]byte(other), one) {
				t.Errorf("%q and %q are two names", one, other)
			}
		}
	}
	for _, pair := range [][2]string{{"action", "actıon"}, {"action", "ACTİON"}, {"kiosk", "\u212aio\u017fk"}} {
		if !route.SameFold(pair[0], pair[1]) || route.Fold(pair[0]) != route.Fold(pair[1]) {
			t.Errorf("%q and %q are two names", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"action", "actions"}, {"action", "actiön"}, {"", "a"}, {"a\x00", "a"}} {
		if route.SameFold(pair[0], pair[1]) || route.SameFold(pair[1], pair[0]) {
			t.Errorf("%q and %q are one name", pair[0], pair[1])
		}
	}
}
