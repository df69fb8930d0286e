//go:build shops

package shoptest_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// caddyBinary is Caddy with the gate, built once.
var caddyBinary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "shops")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	caddyBinary = filepath.Join(dir, "caddy")
	build := exec.Command("go", "build", "-pgo=off", "-o", caddyBinary, "../../cmd/caddy")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building caddy: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
