package session

import (
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// Usage is the syntax of the option one_at_a_time.
const Usage = "one_at_a_time [shared] <credential...> [except <path|@matcher...>]"

// ReadOption reads the option one_at_a_time.
func ReadOption(into **Options) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 1, -1)
		if err != nil {
			return err
		}
		name := d.Token() // of the line
		o := new(Options)
		if at := slices.Index(args, "except"); at >= 0 {
			if at == len(args)-1 {
				return d.Errf("one_at_a_time: except has no path: write `%s`", usage)
			}
			for _, arg := range args[at+1:] {
				if !strings.HasPrefix(arg, "@") {
					o.Except = append(o.Except, arg)
					continue
				}
				name.Text = arg
				o.named = append(o.named, name)
			}
			args = args[:at]
		}
		if args[0] == "shared" {
			o.Shared, args = true, args[1:]
		}
		o.Credentials = args
		if _, err := o.Compile(); err != nil {
			return d.WrapErr(err)
		}
		*into = o
		return nil
	}
}
