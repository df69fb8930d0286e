package accesslist

import (
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadNames reads the names of lists, and appends them to those of earlier lines.
func ReadNames(into *[]string) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		names, err := directive.Arguments(d, usage, 1, -1)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !isName(name) {
				return d.Errf("%q: %s", name, nameRule)
			}
			if slices.Contains(*into, name) {
				return d.Errf("list %s is named twice: once is enough", name)
			}
			*into = append(*into, name)
		}
		return nil
	}
}
