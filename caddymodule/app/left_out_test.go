package app_test

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/internal/sale"
)

// A program without a module, such as this one, says how it is built with it.
func TestWithoutTheModules(t *testing.T) {
	inJSON := caddy.Validate(&caddy.Config{AppsRaw: caddy.ModuleMap{"stockgate": []byte(`{"redis": {"addresses": ["127.0.0.1:1"]}, "notify": {}}`)}})
	_, moveIn := app.OpenMoveIn(sale.MoveFrom{})
	for name, c := range map[string]struct {
		err  error
		says []string
	}{
		"moving in":           {moveIn, []string{"built without moving in", "caddymodule/movein", "`stock`"}},
		"mirror in JSON":      {new(journals.Service).Provision(caddy.Context{}, &journals.Settings{Mirror: []byte("{}")}), []string{"built without it", "caddymodule/mirror", "leave mirror out"}},
		"notify":              {new(app.App).UnmarshalCaddyfile(caddyfile.NewTestDispenser("stockgate {\n\tnotify https://a.example\n}")), []string{"built without it", "caddymodule/notify", "leave notify out", "Testfile:2"}},
		"notify in JSON":      {inJSON, []string{"built without it", "caddymodule/notify"}},
		"mirror in Caddyfile": {new(app.App).UnmarshalCaddyfile(caddyfile.NewTestDispenser("stockgate {\n\tmirror redis://a.example {\n\t}\n}")), []string{"built without it", "caddymodule/mirror", "Testfile:2"}},
	} {
		for _, want := range c.says {
			if c.err == nil || !strings.Contains(c.err.Error(), want) {
				t.Errorf("%s: %v, it should say %q", name, c.err, want)
			}
		}
	}
	var none journals.Service
	if err := none.Provision(caddy.Context{}, &journals.Settings{}); err != nil || none.Mirrors("s") {
		t.Errorf("no mirror: %v", err)
	}
}
