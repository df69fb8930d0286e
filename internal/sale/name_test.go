package sale_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/internal/sale"
)

func TestIsName(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "a": true, "!": true, "~": true, "a/b%c?d#e": true, "..": true,
		" ": false, "a b": false, "a\tb": false, "a\x00": false, "a\x7f": false, "é": false, "\xff": false,
		strings.Repeat("a", sale.MaxName): true, strings.Repeat("a", sale.MaxName+1): false,
	} {
		if got := sale.IsName(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
