package record_test

import (
	"testing"

	"github.com/stockgate/stockgate/internal/store/record"
)

// Only control characters become spaces, byte by byte as in Lua: text that is not UTF-8 keeps
// its other bytes.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "an order": "an order", "a\tb\nc\x7f": "a b c ", "\x00": " ", "né\x1f": "né ", "\xff\t\xfe": "\xff \xfe",
	} {
		if got := record.Plain(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	text := "nothing to replace"
	if n := testing.AllocsPerRun(100, func() { _ = record.Plain(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
