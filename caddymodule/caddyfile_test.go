package caddymodule_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/stockgate/stockgate/caddymodule"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/mysql"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/postgres"
	_ "github.com/stockgate/stockgate/caddymodule/ledgers/sqlite"
	_ "github.com/stockgate/stockgate/caddymodule/mirror"
	_ "github.com/stockgate/stockgate/caddymodule/movein"
	_ "github.com/stockgate/stockgate/caddymodule/notify"
)

var update = flag.Bool("update", false, "write what the Caddyfiles in testdata/adapt are adapted to")

// section parts a golden file: a Caddyfile, then its JSON or the error, then the
// warnings if there are any.
const section = "----------\n"

// TestAdapt adapts each Caddyfile in testdata/adapt. A name says what it shows:
// option-, error-, warning-, order- or site-.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/adapt/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".caddyfiletest")
		t.Run(name, func(t *testing.T) {
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, _, _ := strings.Cut(string(golden), section)
			result, warnings, failed := adapted(input)
			if failed != strings.HasPrefix(name, "error-") || (warnings != "") != strings.HasPrefix(name, "warning-") && !failed {
				t.Errorf("the name does not say what happens: failed %v, warnings:\n%s", failed, warnings)
			}
			got := input + section + result
			if warnings != "" {
				got += section + warnings
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(golden) {
				t.Errorf("adapts to:\n%s\nwant:\n%s", got, golden)
			}
		})
	}
}

// adapted is what a Caddyfile becomes: JSON or an error, and warnings.
func adapted(input string) (result, warnings string, failed bool) {
	out, warned, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(input), nil)
	if err != nil {
		return err.Error() + "\n", "", true
	}
	for _, w := range warned {
		warnings += fmt.Sprintf("%s:%d: %s: %s\n", w.File, w.Line, w.Directive, w.Message)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, out, "", "\t"); err != nil {
		return err.Error() + "\n", warnings, true
	}
	return pretty.String() + "\n", warnings, false
}

// TestExampleCaddyfile adapts the example without a warning, and provisions it.
func TestExampleCaddyfile(t *testing.T) {
	input, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	out, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(input, map[string]any{"filename": "Caddyfile.example"})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		t.Errorf("warning: %s", w)
	}
	var cfg caddy.Config
	if err := caddy.StrictUnmarshalJSON(out, &cfg); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&cfg); err != nil {
		t.Errorf("it is not valid: %v", err)
	}
}
