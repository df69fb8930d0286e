package gate

import (
	"encoding/json"
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/lists"
)

// listNames reads the names of lists, and adds them to those of earlier lines.
func listNames(into *[]string) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		names, err := directive.Arguments(d, usage, 1, -1)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !lists.IsName(name) {
				return d.Errf("%q: %s", name, lists.NameRule)
			}
			if slices.Contains(*into, name) {
				return d.Errf("list %s is named twice: once is enough", name)
			}
			*into = append(*into, name)
		}
		return nil
	}
}

func (g *Gate) readOtherItems(d *caddyfile.Dispenser, usage string) error {
	if err := directive.Text(&g.OtherItems)(d, usage); err != nil {
		return err
	}
	if g.OtherItems != "refuse" && g.OtherItems != "pass" {
		return d.Errf("other_items %q: write `%s`", g.OtherItems, usage)
	}
	return nil
}

// checkLists says which list of a gate the global option lacks. Without a global
// option the app may come from elsewhere; it says so itself when it is loaded.
func checkLists(h httpcaddyfile.Helper, g *Gate) error {
	global, ok := h.Option("stockgate").(httpcaddyfile.App)
	if !ok {
		return nil
	}
	var app app.App
	if err := json.Unmarshal(global.Value, &app); err != nil {
		return err
	}
	for _, uses := range []struct {
		option string
		names  []string
	}{{"deny", g.Deny}, {"allow", g.Allow}} {
		for _, name := range uses.names {
			if _, ok := app.Lists[name]; !ok {
				return h.WrapErr(lists.Unknown(uses.option, name))
			}
		}
	}
	return nil
}
