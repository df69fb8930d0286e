package main

import (
	"bytes"
	"errors"
	"flag"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// asGoVet are flags with which the compiler finds all but this module in its cache, where go vet has put it. This
// module it must compile again, because it is another one's dependency here: it need not optimize it.
var asGoVet = []string{"-gcflags=github.com/stockgate/stockgate/...=-N -l -dwarf=false", "-ldflags=-w -s"}

// TestBuildsThisCheckout builds for real what xcaddy.json asks for.
func TestBuildsThisCheckout(t *testing.T) {
	t.Setenv("CGO_ENABLED", "0")
	var stderr bytes.Buffer
	caddy := filepath.Join(t.TempDir(), "bin", "caddy")
	if err := run(t.Context(), []string{"--config", filepath.Join("..", "..", "xcaddy.json"), "--output", caddy}, asGoVet, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if err := expect(t.Context(), caddy, []string{"http.handlers.stockgate", "http.handlers.no_such_handler"}); err == nil || !strings.Contains(err.Error(), "lacks http.handlers.no_such_handler:") {
		t.Errorf("a module that is not there: %v", err)
	}
}

// A dependency that needs a newer Caddy than the config names must not lead to
// a build of that one.
func TestOlderCaddyIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module caddy\n\ngo 1.26\n\nrequire "+caddyModule+" v2.11.9\n")
	c := config{CaddyVersion: "v2.11.8", Dependencies: []dependency{{Module: "github.com/stockgate/stockgate", Replace: filepath.Join("..", "..")}}}
	var stderr bytes.Buffer
	if err := c.seedSums(dir); err != nil {
		t.Fatal(err)
	}
	if err := c.checkCaddy(t.Context(), dir, &stderr); err == nil || !strings.Contains(err.Error(), "v2.11.9") {
		t.Errorf("got %v, want that v2.11.9 is needed\n%s", err, &stderr)
	}
	for _, right := range []string{"v2.11.9", "latest"} {
		c.CaddyVersion = right
		if err := c.checkCaddy(t.Context(), dir, &stderr); err != nil {
			t.Error(err)
		}
	}
}

// What the go tool does not take for a module or its version ends the build.
func TestGoToolRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"caddy_version":"v1.0.5"}`: "should be v2, not v1",
		`{"caddy_version":"v2.11.9","dependencies":[{"module":"a.b/c d","version":"v1.0.0"}]}`:   "invalid char ' '",
		`{"caddy_version":"v2.11.9","dependencies":[{"module":"a.b/c\"\n","version":"v1.0.0"}]}`: "invalid char '\"'",
	} {
		file := filepath.Join(t.TempDir(), "xcaddy.json")
		write(t, file, text)
		var stderr bytes.Buffer
		if err := run(t.Context(), []string{"--config", file, "--output", filepath.Join(t.TempDir(), "caddy")}, nil, &stderr); err == nil || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: got %v, want an error about %q\n%s", text, err, want, &stderr)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, bad := range [][]string{{"build"}, {"--no-such-flag"}} {
		var stderr bytes.Buffer
		if err := run(t.Context(), bad, nil, &stderr); !errors.Is(err, errUsage) || stderr.Len() == 0 {
			t.Errorf("%q: error %v, said %q", bad, err, &stderr)
		}
	}
	if err := run(t.Context(), []string{"--help"}, nil, new(bytes.Buffer)); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
}

func TestNoCaddyIsMissed(t *testing.T) {
	if err := expect(t.Context(), filepath.Join(t.TempDir(), "caddy"), nil); err == nil {
		t.Error("a Caddy that is not there has all its modules")
	}
}

var several = config{
	CaddyVersion: "v2.11.9",
	Dependencies: []dependency{
		{Module: "github.com/stockgate/stockgate", Version: "latest", Replace: "/src"},
		{Module: "a.b/c", Version: "v1.2.3"},
		{Module: "a.b/d/v3", Version: "main"},
	},
}

func TestMainFile(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", several.mainFile(), parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, several.mainFile())
	}
	var imports []string
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, path)
	}
	want := []string{caddyModule + "/cmd", caddyModule + "/modules/standard", "github.com/stockgate/stockgate", "a.b/c", "a.b/d/v3"}
	if !slices.Equal(imports, want) {
		t.Errorf("imports %q, want %q", imports, want)
	}
}

func TestRequirements(t *testing.T) {
	edits, get := several.requirements()
	wantEdits := []string{
		"-require=github.com/caddyserver/caddy/v2@v2.11.9",
		"-require=github.com/stockgate/stockgate@v0.0.0",
		"-replace=github.com/stockgate/stockgate=/src",
		"-require=a.b/c@v1.2.3",
	}
	if !slices.Equal(edits, wantEdits) {
		t.Errorf("edits are %q, want %q", edits, wantEdits)
	}
	if want := []string{"a.b/d/v3@main"}; !slices.Equal(get, want) {
		t.Errorf("gets are %q, want %q", get, want)
	}
	edits, get = config{CaddyVersion: "latest"}.requirements()
	if want := []string{caddyModule + "@latest"}; len(edits) != 0 || !slices.Equal(get, want) {
		t.Errorf("the latest Caddy: edits %q, gets %q, want %q", edits, get, want)
	}
}

func TestPlaceholder(t *testing.T) {
	for module, want := range map[string]string{
		"a.b/c":          "v0.0.0",
		"a.b/c/v2":       "v2.0.0",
		"a.b/v2/c":       "v0.0.0",
		"a.b/dev2":       "v0.0.0",
		"gopkg.in/x.v3":  "v3.0.0",
		"example.com/x3": "v0.0.0",
	} {
		if got := placeholder(module); got != want {
			t.Errorf("%s: %s, want %s", module, got, want)
		}
	}
}
