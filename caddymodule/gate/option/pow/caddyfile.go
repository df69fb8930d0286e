package pow

import (
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadOption reads the option challenge.
func ReadOption(into **Challenge) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 1, 1)
		if err != nil {
			return err
		}
		if args[0] != "pow" {
			return d.Errf("there is no challenge %q: write `%s`", args[0], usage)
		}
		c := &Challenge{Kind: args[0]}
		*into = c
		at := *d
		err = directive.ReadBlock(d, map[string]directive.Option{
			"above":  {Usage: "above <attempts> <window>", Read: c.readAbove},
			"bits":   {Usage: "bits <least> <most>", Read: c.readBits},
			"header": {Usage: "header <field>", Read: directive.Text(&c.Header)},
			"cookie": {Usage: "cookie <name>", Read: directive.Text(&c.Cookie)},
		})
		if err != nil {
			return err
		}
		checked := *c
		if err := checked.check(); err != nil {
			return at.Errf("challenge: %v", err)
		}
		return nil
	}
}

func (c *Challenge) readAbove(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 2, 2)
	if err != nil {
		return err
	}
	if c.Above, err = wholeNumber(d, args[0]); err != nil {
		return err
	}
	c.Window, err = directive.ParseDuration(d, args[1])
	return err
}

func (c *Challenge) readBits(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 2, 2)
	if err != nil {
		return err
	}
	if c.LeastBits, err = wholeNumber(d, args[0]); err != nil {
		return err
	}
	c.MostBits, err = wholeNumber(d, args[1])
	return err
}

// wholeNumber reads one above 0, because 0 means the default in JSON.
func wholeNumber(d *caddyfile.Dispenser, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, d.Errf("%q is not a whole number above 0", text)
	}
	return n, nil
}
