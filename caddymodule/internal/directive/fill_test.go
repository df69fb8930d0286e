package directive_test

import (
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// A placeholder must be known wherever it stands in a value. What it stands for may have braces.
func TestFill(t *testing.T) {
	t.Setenv("STOCKGATE_TEST_BRACES", "{abc}")
	for value, want := range map[string]string{
		"plain":                          "plain",
		"{env.STOCKGATE_TEST_BRACES}":    "{abc}",
		"a:{env.STOCKGATE_TEST_BRACES}@": "a:{abc}@",
		"{env.STOCKGATE_TEST_NONE}":      "",
		`pass\{word\}`:                   "pass{word}",
		"one { alone":                    "one { alone",
		"{nope.x}":                       "",
		"redis://:{nope.x}@h:1":          "",
		"{}":                             "",
	} {
		got, err := directive.Fill(value)
		if got != want || (err != nil) != (want == "" && value != "{env.STOCKGATE_TEST_NONE}") {
			t.Errorf("%s gives %q, %v, want %q", value, got, err, want)
		}
	}
}
