package jwt_test

import (
	"encoding/json"
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
			"issuer":    {HMAC: secret, Issuer: value},
			"audience":  {HMAC: secret, Audience: value},
			"require a": {HMAC: secret, Require: map[string][]string{"a": {"b", value}}},
		} {
			if value == "" && j.Require != nil {
				continue // a value that is required is never left out
			}
			v, err := jwt.Configs{j}.Open()
			switch {
			case err == nil && want != "":
				t.Errorf("%s %q is accepted", name, value)
			case err != nil && (want == "" || !strings.HasPrefix(err.Error(), name+" ") || !strings.Contains(err.Error(), want)):
				t.Errorf("%s %q: %v", name, value, err)
			}
			if err == nil {
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// Several configurations are several issuers: what cannot select one of them is an error.
func TestSeveralIssuers(t *testing.T) {
	t.Setenv("STOCKGATE_TEST_NAME", "a")
	secret := strings.Repeat("s", 40)
	of := func(issuer, cookie string) *jwt.Config {
		return &jwt.Config{HMAC: secret, Issuer: issuer, Cookie: cookie}
	}
	for _, c := range []struct {
		all  jwt.Configs
		want string
	}{
		{jwt.Configs{of("", "")}, ""},
		{jwt.Configs{of("a", ""), of("b", "")}, ""},
		{jwt.Configs{of("a", "c"), of("b", "c")}, ""},
		{jwt.Configs{of("a", ""), of("", "")}, "number 2 of 2: several jwt are several issuers"},
		{jwt.Configs{of("", ""), of("a", "")}, "number 1 of 2: several jwt are several issuers"},
		{jwt.Configs{of("a", ""), of("b", ""), of("a", "")}, "number 3 of 3: an earlier jwt has its issuer"},
		{jwt.Configs{of("a", ""), of("{env.STOCKGATE_TEST_NAME}", "")}, "two have the issuer a"},
		{jwt.Configs{of("a", ""), of("b", "c")}, "number 2 of 2: a request has one token"},
		{jwt.Configs{of("a", ""), {Issuer: "b"}}, "number 2 of 2: give either"},
		{jwt.Configs{of("a", ""), nil}, "null"},
		{jwt.Configs{{HMAC: secret, Require: map[string][]string{"a": nil}}}, "require a: name one value"},
		{jwt.Configs{{HMAC: secret, Prefix: map[string]string{"sub": ""}}}, "prefix sub: the text is empty"},
	} {
		v, err := c.all.Open()
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.all, err, c.want)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Two people with one sub are one buyer unless the prefixes of their issuers differ.
func TestBuyersOfSeveralIssuers(t *testing.T) {
	const shared, one = "the same sub of two of them is one buyer", "is the same for all buyers of an issuer"
	with := func(prefixes ...string) (all jwt.Configs) {
		for _, p := range prefixes {
			c := new(jwt.Config)
			if p != "" {
				c.Prefix = map[string]string{"sub": p}
			}
			all = append(all, c)
		}
		return all
	}
	for _, c := range []struct {
		all   jwt.Configs
		buyer string
		want  []string
	}{
		{nil, "{http.auth.user.id}", nil},
		{with(""), "{jwt.sub}", nil},
		{with("", ""), "{jwt.sub}", []string{shared}},
		{with("", "b:"), "{jwt.sub}", nil},
		{with("a:", "b:", "a:"), "{jwt.sub}", []string{shared}},
		{with("a:", "b:"), "{jwt.email}", []string{"the same email of two"}},
		{with("", ""), "{header.X-Buyer}", nil},
		{with(""), "{jwt.iss} {jwt.sub}", []string{one}},
		{with("", "b:"), "{jwt.iss} {jwt.sub}", []string{one}},
	} {
		risks := c.all.Risks(strings.Fields(c.buyer))
		if len(risks) != len(c.want) || len(risks) == 1 && !strings.Contains(risks[0], c.want[0]) {
			t.Errorf("%d, %s: %q, want %q", len(c.all), c.buyer, risks, c.want)
		}
	}
}

// In JSON one issuer stands alone, as before there could be several.
func TestConfigsInJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"issuer":"a"}`:                  "",
		`[{"issuer":"a"},{"issuer":"b"}]`: "",
		`[{"issuer":"a"}]`:                `{"issuer":"a"}`,
		`{"issuer":"a","issuers":1}`:      `unknown field "issuers"`,
		`[{"issuers":1}]`:                 `unknown field "issuers"`,
		`"a"`:                             "cannot unmarshal",
		`null`:                            "",
	} {
		var all jwt.Configs
		got, err := []byte(nil), json.Unmarshal([]byte(text), &all)
		if err == nil {
			got, err = json.Marshal(all)
		}
		if want == "" {
			want = text
		}
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && string(got) != want {
			t.Errorf("%s: %s %v, want %s", text, got, err, want)
		}
	}
}
