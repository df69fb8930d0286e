package directive_test

import (
	"strings"
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

// An empty placeholder is named: where the whole value is empty, and where any part of it must not be.
func TestFillNamesWhatIsEmpty(t *testing.T) {
	t.Setenv("STOCKGATE_TEST_HOST", "h")
	const none = "is empty, because {env.STOCKGATE_TEST_NONE} is"
	for value, want := range map[string][2]string{
		"{env.STOCKGATE_TEST_HOST}:6379":                     {"", ""},
		"{env.STOCKGATE_TEST_NONE}":                          {none, none},
		" {env.STOCKGATE_TEST_NONE} ":                        {none, none},
		"{env.STOCKGATE_TEST_NONE}:6379":                     {"", none},
		"{env.STOCKGATE_TEST_HOST}{env.STOCKGATE_TEST_NONE}": {"", none},
		"":       {"is empty", ""},
		"{nope}": {"not known here", "not known here"},
		`\{x\}`:  {"", ""},
	} {
		for i, fill := range []func(string) (string, error){directive.FillSecret, directive.FillAll} {
			_, err := fill(value)
			if (err != nil) != (want[i] != "") || err != nil && !strings.Contains(err.Error(), want[i]) {
				t.Errorf("%q: %v, want %q", value, err, want[i])
			}
		}
	}
}
