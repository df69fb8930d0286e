//go:build shops

package shoptest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// caddyBinary is Caddy with the gate: what `make build` has made.
var caddyBinary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	binary, err := filepath.Abs("../../../bin/caddy")
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v: run `make build` first\n", err)
		return 1
	}
	caddyBinary = binary
	return m.Run()
}
