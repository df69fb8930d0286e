package main

import (
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

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

func TestXcaddyArgs(t *testing.T) {
	want := []string{
		"build", "v2.11.9", "--output", "/out",
		"--with", "github.com/stockgate/stockgate=/src",
		"--with", "a.b/c@v1.2.3",
		"--with", "a.b/d/v3@main",
	}
	if got := several.xcaddyArgs("/out"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
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

func TestParseModules(t *testing.T) {
	const a, b = "github.com/caddyserver/caddy/v2", "github.com/stockgate/stockgate"
	got := parseModules("admin.api.load " + a + "\nhttp " + a + "\n\n  Standard modules: 2\n\n" +
		"stockgate " + b + " => /src\nodd [no idea]\n\n  Non-standard modules: 1\n")
	want := modules{"admin.api.load": a, "http": a, "stockgate": b, "odd": "[no"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if ids := got.of(b); !slices.Equal(ids, []string{"stockgate"}) {
		t.Errorf("from %s: %q", b, ids)
	}
	if err := got.expect([]string{"http", "stockgate"}); err != nil {
		t.Error(err)
	}
	if err := got.expect([]string{"http", "x", "y"}); err == nil {
		t.Error("missing modules were not missed")
	}
}
