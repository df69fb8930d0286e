//go:build upgrade

package upgrade_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate"
)

// adaptsOtherwise are Caddyfiles of the last version that adapt to something else now, and why a
// site that has one sells as before.
var adaptsOtherwise = map[string]string{
	"caddymodule/testdata/adapt/option-dashboard-acts-all.caddyfiletest": "acts without arguments is all that users may do, and pausing offers is new",
}

// section parts a golden file, as in caddymodule/caddyfile_test.go: a Caddyfile, then its JSON or
// the error, then the warnings if there are any.
const section = "----------\n"

// Every Caddyfile that the last version accepts becomes the same JSON: its golden files say what
// it was, and its binary says it of the examples. A new warning is allowed.
func TestAdaptsAsBefore(t *testing.T) {
	goldens := lastFiles(t, func(name string) bool {
		return strings.HasPrefix(name, "caddymodule/testdata/adapt/") && !strings.HasPrefix(filepath.Base(name), "error-")
	})
	if len(goldens) < 150 {
		t.Fatalf("the last version has %d golden files", len(goldens))
	}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(goldens)) {
		parts := strings.SplitN(goldens[name], section, 3)
		if have, err := adapted(parts[0], name); err != nil || have != parts[1] {
			differ = append(differ, name)
			if adaptsOtherwise[name] == "" {
				t.Errorf("%s adapts to (%v):\n%s\nthe last version made of it:\n%s", name, err, have, parts[1])
			}
		}
	}
	files := lastFiles(t, isCaddyfile)
	if len(files) < 5 {
		t.Fatalf("the last version has %d Caddyfiles", len(files))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		was, have := adaptedByLast(t, files[name], name), ""
		have, err := adapted(files[name], name)
		if err != nil || have != was {
			differ = append(differ, name)
			if adaptsOtherwise[name] == "" {
				t.Errorf("%s adapts to (%v):\n%s\nthe last version makes of it:\n%s", name, err, have, was)
			}
		}
	}
	for name := range adaptsOtherwise {
		if !slices.Contains(differ, name) {
			t.Errorf("%s adapts as before: take it out of adaptsOtherwise", name)
		}
	}
}

// adapted is what this tree makes of a Caddyfile.
func adapted(input, name string) (string, error) {
	out, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(input), nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return pretty(out)
}

// adaptedByLast is what the last version makes of it.
func adaptedByLast(t *testing.T, input, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "adapt", "--config", file, "--adapter", "caddyfile")
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: the last version: %v\n%s", name, err, failed.String())
	}
	text, err := pretty(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func pretty(text []byte) (string, error) {
	var out bytes.Buffer
	err := json.Indent(&out, text, "", "\t")
	return strings.TrimSpace(out.String()) + "\n", err
}
