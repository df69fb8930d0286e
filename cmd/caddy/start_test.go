package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// Every caddy command initializes all packages, most commands use few of them: what costs much is
// made when it is first needed.
func TestPackagesStartCheaply(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	const most = 2 << 20
	packages := regexp.MustCompile(`(?m)^init (github\.com/stockgate/stockgate/\S+) .* (\d+) bytes`).FindAllSubmatch(trace, -1)
	if len(packages) < 20 {
		t.Fatalf("packages are missing in the trace of the runtime:\n%s", trace)
	}
	for _, p := range packages {
		if bytes, err := strconv.Atoi(string(p[2])); err != nil || bytes > most {
			t.Errorf("the start of %s takes %s bytes, more than %d", p[1], p[2], most)
		}
	}
}
