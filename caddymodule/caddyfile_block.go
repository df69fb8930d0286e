package caddymodule

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// option is one subdirective of a block.
type option struct {
	// usage is how it is written: what an error shows.
	usage string
	// read takes its arguments; the dispenser stands at its name.
	read func(d *caddyfile.Dispenser, usage string) error
	// list: it may be given more than once.
	list bool
}

// readBlock reads a block of options; no block is an empty one. The option `@` is
// all that begin with @. What is unknown, or is given twice without being a list,
// is an error: a misspelt option would otherwise sell by its default.
func readBlock(d *caddyfile.Dispenser, options map[string]option) error {
	first := make(map[string]int) // the line of each option
	last := ""
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		name := d.Val()
		key := name
		if strings.HasPrefix(name, "@") {
			key = "@"
		}
		o, ok := options[key]
		switch line, twice := first[key]; {
		case name == "{":
			return d.Errf("%s takes no block", last)
		case !ok:
			return d.Errf("unrecognized subdirective %q: there are %s", name, strings.Join(usages(options), ", "))
		case twice && !o.list:
			return d.Errf("%s is given twice, first at line %d: write it once", name, line)
		}
		first[key] = d.Line()
		if err := o.read(d, o.usage); err != nil {
			return err
		}
		last = name
	}
	return nil
}

// usages are the names of options, in the order of the alphabet.
func usages(options map[string]option) []string {
	names := slices.Sorted(maps.Keys(options))
	for i, name := range names {
		if name == "@" {
			names[i] = "@name"
		}
	}
	return names
}

// arguments are the rest of the line, least to most of them (-1: any number), none
// of them empty.
func arguments(d *caddyfile.Dispenser, usage string, least, most int) ([]string, error) {
	args := d.RemainingArgs()
	if len(args) < least || most >= 0 && len(args) > most {
		return nil, d.Errf("wrong number of arguments: write `%s`", usage)
	}
	if slices.Contains(args, "") {
		return nil, d.Errf("an argument is empty: write `%s`", usage)
	}
	return args, nil
}

// text reads one argument.
func text(into *string) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := arguments(d, usage, 1, 1)
		if err == nil {
			*into = args[0]
		}
		return err
	}
}

// texts reads one argument or more.
func texts(into *[]string) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) (err error) {
		*into, err = arguments(d, usage, 1, -1)
		return err
	}
}

// flag reads an option that says all by being there.
func flag(into *bool) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		_, err := arguments(d, usage, 0, 0)
		*into = true
		return err
	}
}

// duration reads a duration. 0 is an error: in JSON it means the default, and who
// writes it here means something else.
func duration(into *caddy.Duration) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := arguments(d, usage, 1, 1)
		if err != nil {
			return err
		}
		*into, err = parseDuration(d, args[0])
		return err
	}
}

func parseDuration(d *caddyfile.Dispenser, s string) (caddy.Duration, error) {
	dur, err := caddy.ParseDuration(s)
	if err != nil || dur <= 0 {
		return 0, d.Errf("%q is not a duration above 0, such as 500ms or 30s", s)
	}
	return caddy.Duration(dur), nil
}

// count reads a whole number above 0.
func count(into *int) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := arguments(d, usage, 1, 1)
		if err != nil {
			return err
		}
		if *into, err = strconv.Atoi(args[0]); err != nil || *into <= 0 {
			return d.Errf("%q is not a whole number above 0", args[0])
		}
		return nil
	}
}

// isNumber says whether text has digits only.
func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
