package jwt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/gate/option/jwt"
)

// An issuer or audience that is configured is required: text that fills to nothing must not mean any.
func TestFilledIssuerAndAudience(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"name": "https://id.example.com\n", "blank": " \n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("STOCKGATE_TEST_NAME", "https://id.example.com")
	t.Setenv("STOCKGATE_TEST_EMPTY", "")
	const empty, unknown = "is empty", "placeholder that is not known"
	for value, want := range map[string]string{
		"":                           "",
		"https://id.example.com":     "",
		"{env.STOCKGATE_TEST_NAME}":  "",
		"{file." + dir + "/name}":    "",
		`tenant \{7\}`:               "",
		"{env.STOCKGATE_TEST_EMPTY}": empty,
		"{env.STOCKGATE_TEST_NONE}":  empty,
		"{file." + dir + "/none}":    empty,
		"{file." + dir + "/blank}":   empty,
		" ":                          empty,
		"{nope.x}":                   unknown,
		"{http.request.host}":        unknown,
	} {
		secret := strings.Repeat("s", 40)
		for name, j := range map[string]*jwt.Config{
			"issuer":   {HMAC: secret, Issuer: value},
			"audience": {HMAC: secret, Audience: value},
		} {
			key, _, err := j.Open()
			switch {
			case err == nil && want != "":
				t.Errorf("%s %q is accepted", name, value)
			case err != nil && (want == "" || !strings.HasPrefix(err.Error(), name+" ") || !strings.Contains(err.Error(), want)):
				t.Errorf("%s %q: %v", name, value, err)
			}
			if err == nil {
				if err := jwt.Close(key); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
