package main

import (
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
		"nothing":           {``, "EOF"},
		"not an object":     {`[]`, "cannot unmarshal"},
		"more after it":     {`{"caddy_version":"v2.11.9"} {}`, "more after"},
		"misspelt name":     {`{"caddy_version":"v2.11.9","dependancies":[]}`, "dependancies"},
		"no Caddy":          {`{}`, "caddy_version"},
		"a branch of Caddy": {`{"caddy_version":"master"}`, "caddy_version"},
		"no module":         {`{"caddy_version":"latest","dependencies":[{"version":"v1.0.0"}]}`, "dependencies[0]: module"},
		"no version":        {`{"caddy_version":"latest","dependencies":[{"module":"a.b/c"}]}`, "no version"},
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

// A directory in the file is relative to the file.
func TestReplacements(t *testing.T) {
	root := t.TempDir()
	module := filepath.Join(root, "module")
	write(t, filepath.Join(module, "go.mod"), "module example.com/x\n")
	file := filepath.Join(root, "etc", "xcaddy.json")
	write(t, file, `{"caddy_version":"latest","dependencies":[{"module":"example.com/x","replace":"../module"}]}`)
	t.Chdir(root)

	c, err := readConfig(filepath.Join("etc", "xcaddy.json"))
	if err != nil || c.Dependencies[0].Replace != module {
		t.Errorf("got %+v (%v), want %s", c, err, module)
	}
	write(t, file, `{"caddy_version":"latest","dependencies":[{"module":"example.com/x","replace":"nowhere"}]}`)
	if _, err := readConfig(file); err == nil || !strings.Contains(err.Error(), "dependencies[0]: replace") {
		t.Errorf("a directory that is not there: %v", err)
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
