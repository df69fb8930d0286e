//go:build shops

package shoptest_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// install brings the packages of a shop to its directory, in the versions of its lock file. What
// an earlier run has installed from the same lock file stays. No script of a package runs: neither
// shop needs one.
func install(t testing.TB, dir string) {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	installed := filepath.Join(dir, "node_modules", ".installed-lock.json")
	if have, err := os.ReadFile(installed); err == nil && bytes.Equal(have, lock) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--omit=peer", "--prefer-offline", "--loglevel=error")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci in %s: %v\n%s", dir, err, out)
	}
	if err := os.WriteFile(installed, lock, 0o644); err != nil {
		t.Fatal(err)
	}
}
