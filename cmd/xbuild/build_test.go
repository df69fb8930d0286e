package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildsThisCheckout builds for real what xcaddy.json asks for, with the go
// tool alone. It is slow the first time, until the compiler's cache is warm.
func TestBuildsThisCheckout(t *testing.T) {
	var stdout, stderr bytes.Buffer
	f := flags{
		config: filepath.Join("..", "..", "xcaddy.json"),
		output: filepath.Join(t.TempDir(), "bin", "caddy"),
		expect: []string{"http.handlers.reverse_proxy"},
	}
	if err := run(t.Context(), f, "", &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if want := "from github.com/stockgate/stockgate:"; !strings.Contains(stdout.String(), want) {
		t.Errorf("said %q, want %q", &stdout, want)
	}
	built, err := listModules(t.Context(), f.output)
	if err != nil {
		t.Fatal(err)
	}
	if err := built.expect([]string{"http.handlers.no_such_handler"}); err == nil || !strings.Contains(err.Error(), "no_such_handler") {
		t.Errorf("a module that is not there: %v", err)
	}
}

// A dependency that needs a newer Caddy than the config names must not lead to
// a build of that one.
func TestOlderCaddyIsRefused(t *testing.T) {
	var stdout, stderr bytes.Buffer
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module caddy\n\ngo 1.26\n\nrequire "+caddyModule+" v2.11.9\n")
	b := builder{stdout: &stdout, stderr: &stderr, config: config{
		CaddyVersion: "v2.11.8",
		Dependencies: []dependency{{Module: "github.com/stockgate/stockgate", Replace: filepath.Join("..", "..")}},
	}}
	if err := b.seedSums(dir); err != nil {
		t.Fatal(err)
	}
	if err := b.checkCaddy(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "v2.11.9") {
		t.Errorf("got %v, want that v2.11.9 is needed\n%s", err, &stderr)
	}
	b.config.CaddyVersion = "v2.11.9"
	if err := b.checkCaddy(t.Context(), dir); err != nil {
		t.Error(err)
	}
}

func TestListModulesOfNoCaddy(t *testing.T) {
	if _, err := listModules(t.Context(), filepath.Join(t.TempDir(), "caddy")); err == nil {
		t.Error("a Caddy that is not there lists modules")
	}
}
