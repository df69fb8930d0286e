package caddymodule_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/stockgate/stockgate/caddymodule"
)

// The Caddyfiles of the README are read as they stand there, and warn of nothing
// that is ours.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	adapter := caddyconfig.GetAdapter("caddyfile")
	whole := 0
	for _, block := range regexp.MustCompile("(?s)```caddyfile\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		text := block[1]
		switch {
		case strings.HasPrefix(text, "{"):
			whole++
		case strings.HasPrefix(text, "http://"): // a site of its own
		case strings.HasPrefix(text, "jwt"): // options of a gate
			text = "a.example {\nstockgate_guard\n@order method POST\nstockgate @order {\nline {json.sku}\n" + text + "}\n}\n"
		default: // a part of a site
			text = "a.example {\nstockgate_guard\n@order method POST\n" + text + "}\n"
		}
		_, warnings, err := adapter.Adapt([]byte(text), map[string]any{"filename": "README.md"})
		if err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
		for _, w := range warnings {
			if w.Directive == "stockgate" {
				t.Errorf("%s in\n%s", w.Message, text)
			}
		}
	}
	if whole < 2 {
		t.Errorf("the README has %d whole Caddyfiles, there were two", whole)
	}
}
