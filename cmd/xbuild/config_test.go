package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParseConfig(t *testing.T) {
	got, err := parseConfig([]byte(`{
		"caddy_version": "v2.11.9",
		"dependencies": [
			{"module": "github.com/stockgate/stockgate", "version": "v1.2.3"},
			{"module": "example.com/x/v2", "replace": "../x"}
		],
		"expect": ["stockgate"]
	}`))
	want := config{
		CaddyVersion: "v2.11.9",
		Dependencies: []dependency{
			{Module: "github.com/stockgate/stockgate", Version: "v1.2.3"},
			{Module: "example.com/x/v2", Replace: "../x"},
		},
		Expect: []string{"stockgate"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
}

func TestParseConfigRefuses(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing":            {``, "EOF"},
		"not an object":      {`[]`, "cannot unmarshal"},
		"more after it":      {`{"caddy_version":"v2.11.9"} {}`, "more after"},
		"misspelt name":      {`{"caddy_version":"v2.11.9","dependancies":[]}`, "dependancies"},
		"no Caddy":           {`{}`, "caddy_version"},
		"Caddy 1":            {`{"caddy_version":"v1.0.5"}`, "Caddy 2"},
		"Caddy as a flag":    {`{"caddy_version":"--help"}`, "caddy_version"},
		"no module":          {`{"caddy_version":"latest","dependencies":[{"version":"v1.0.0"}]}`, "dependencies[0]: module"},
		"module with spaces": {`{"caddy_version":"latest","dependencies":[{"module":"a.b/c d","version":"v1.0.0"}]}`, `"a.b/c d"`},
		"module with quotes": {`{"caddy_version":"latest","dependencies":[{"module":"a.b/c\"\n","version":"v1.0.0"}]}`, "module"},
		"no version":         {`{"caddy_version":"latest","dependencies":[{"module":"a.b/c"}]}`, "no version"},
		"version as a flag":  {`{"caddy_version":"latest","dependencies":[{"module":"a.b/c","version":"-x"}]}`, `"-x"`},
		"twice": {`{"caddy_version":"latest","dependencies":[
			{"module":"a.b/c","version":"v1.0.0"},{"module":"a.b/c","version":"v1.0.1"}]}`, "listed twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parseConfig([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error about %q", err, test.want)
			}
		})
	}
}

// A directory in the file is relative to the file, one of --with to the caller.
func TestReplacements(t *testing.T) {
	root := t.TempDir()
	module := filepath.Join(root, "module")
	write(t, filepath.Join(module, "go.mod"), "module example.com/x\n")
	file := filepath.Join(root, "etc", "xcaddy.json")
	write(t, file, `{"caddy_version":"latest","dependencies":[{"module":"example.com/x","replace":"../module"}]}`)
	t.Chdir(root)

	c, err := readConfig(file)
	if err != nil || c.Dependencies[0].Replace != module {
		t.Errorf("got %+v (%v), want %s", c, err, module)
	}
	d, err := parseWith("example.com/x=module")
	if err != nil || d.Replace != module {
		t.Errorf("got %+v (%v), want %s", d, err, module)
	}
	for _, bad := range []string{"example.com/x=", "example.com/x=etc", "x", "=module", "example.com/x@"} {
		if d, err := parseWith(bad); err == nil {
			t.Errorf("--with %s was read as %+v", bad, d)
		}
	}
	write(t, file, `{"caddy_version":"latest","dependencies":[{"module":"example.com/x","replace":"nowhere"}]}`)
	if _, err := readConfig(file); err == nil || !strings.Contains(err.Error(), "dependencies[0]: replace") {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestAdd(t *testing.T) {
	c := config{Dependencies: []dependency{{Module: "a.b/c", Version: "v1.0.0"}, {Module: "a.b/d", Version: "v1.0.0"}}}
	c.add(dependency{Module: "a.b/c", Replace: "/c"})
	c.add(dependency{Module: "a.b/e", Version: "latest"})
	want := []dependency{{Module: "a.b/c", Replace: "/c"}, {Module: "a.b/d", Version: "v1.0.0"}, {Module: "a.b/e", Version: "latest"}}
	if !reflect.DeepEqual(c.Dependencies, want) {
		t.Errorf("got %+v, want %+v", c.Dependencies, want)
	}
}

func TestFlags(t *testing.T) {
	var stderr bytes.Buffer
	got, err := parseFlags([]string{"--with", "a.b/c@v1.0.0", "--with=a.b/d", "--expect", "x, y", "--expect", "z", "--output", "o", "--config", "c"}, &stderr)
	want := flags{
		config: "c",
		output: "o",
		with:   []dependency{{Module: "a.b/c", Version: "v1.0.0"}, {Module: "a.b/d", Version: "latest"}},
		expect: []string{"x", "y", "z"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	for _, bad := range [][]string{{"build"}, {"--no-such-flag"}, {"--with", "x"}} {
		stderr.Reset()
		if _, err := parseFlags(bad, &stderr); err == nil || stderr.Len() == 0 {
			t.Errorf("%q: error %v, said %q", bad, err, &stderr)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
