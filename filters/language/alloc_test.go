//go:build !race

package language_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/filters/language"
)

func TestChooseDoesNotAllocate(t *testing.T) {
	o := language.Offer("en", "zh", "zh-Hant", "de")
	for _, fields := range [][]string{
		{"zh-CN,zh;q=0.9,en;q=0.8"}, {"fr-CH, fr;q=0.9, *;q=0.5"}, {"nl", "zh-TW;q=0.3"}, {strings.Repeat("a,", 250)}, {strings.Repeat("a", 10<<10)},
	} {
		if n := testing.AllocsPerRun(100, func() { o.Choose(fields) }); n != 0 {
			t.Errorf("%.40q: %v allocations", fields, n)
		}
	}
}
