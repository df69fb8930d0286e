package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// caddyBinary is Caddy with the gate and the race detector, built once.
var caddyBinary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		flag.Set("test.parallel", "6") // most tests wait for deadlines, not for the machine
	}
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	caddyBinary = filepath.Join(dir, "caddy")
	build := exec.Command("go", "build", "-race", "-o", caddyBinary, "./testdata/caddy")
	build.Env = append(os.Environ(), "CGO_ENABLED=1") // the race detector needs it
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building caddy: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
