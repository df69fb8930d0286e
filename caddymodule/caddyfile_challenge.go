package caddymodule

import (
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// readChallenge reads the option challenge.
func readChallenge(into **Challenge) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := arguments(d, usage, 1, 1)
		if err != nil {
			return err
		}
		if args[0] != "pow" {
			return d.Errf("there is no challenge %q: write `%s`", args[0], usage)
		}
		c := &Challenge{Kind: args[0]}
		*into = c
		at := *d
		err = readBlock(d, map[string]option{
			"above":  {usage: "above <attempts> <window>", read: c.readAbove},
			"bits":   {usage: "bits <least> <most>", read: c.readBits},
			"header": {usage: "header <field>", read: text(&c.Header)},
			"cookie": {usage: "cookie <name>", read: text(&c.Cookie)},
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
	args, err := arguments(d, usage, 2, 2)
	if err != nil {
		return err
	}
	if c.Above, err = wholeNumber(d, args[0]); err != nil {
		return err
	}
	c.Window, err = parseDuration(d, args[1])
	return err
}

func (c *Challenge) readBits(d *caddyfile.Dispenser, usage string) error {
	args, err := arguments(d, usage, 2, 2)
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
