package caddymodule_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate"
)

// FuzzUnmarshalCaddyfile reads any text as a gate and as the global block. What is
// refused names file and line; what is accepted is JSON that Caddy loads.
func FuzzUnmarshalCaddyfile(f *testing.F) {
	files, err := filepath.Glob("testdata/adapt/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		golden, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		input, _, _ := strings.Cut(string(golden), section)
		if i := strings.Index(input, "\tstockgate "); i >= 0 {
			f.Add(input[i:])
		}
	}
	f.Fuzz(func(t *testing.T, input string) {
		tokens, err := caddyfile.Tokenize([]byte(input), "Caddyfile")
		if err != nil || len(tokens) == 0 {
			return
		}
		for into, again := range map[caddyfile.Unmarshaler]any{new(gate.Gate): new(gate.Gate), new(app.App): new(app.App)} {
			if err := into.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)); err != nil {
				if !strings.Contains(err.Error(), ", at Caddyfile:") {
					t.Errorf("%T: the error names no line: %v", into, err)
				}
				continue
			}
			out, err := json.Marshal(into)
			if err != nil {
				t.Fatalf("%T: %v", into, err)
			}
			if err := caddy.StrictUnmarshalJSON(out, again); err != nil {
				t.Errorf("%T: Caddy does not load %s: %v", into, out, err)
			}
		}
	})
}
