package directive

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/filters/outcome"
)

// JSONTest reads a test of a JSON body, and appends it to earlier ones.
func JSONTest(into *[]outcome.JSONTest) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args := d.RemainingArgs() // a value may be empty
		if len(args) == 0 {
			return d.Errf("json has no path: write `%s`", usage)
		}
		test := outcome.JSONTest{Values: args[1:]}
		test.Path, test.Absent = strings.CutPrefix(args[0], "!")
		switch {
		case test.Path == "":
			return d.Errf("json has no path: write `%s`", usage)
		case test.Absent && len(test.Values) > 0:
			return d.Errf("json !%s says that there is no value, and then gives one: write either", test.Path)
		}
		*into = append(*into, test)
		return nil
	}
}
