// Package directive reads the options of Caddyfile directives, and warns about them.
package directive

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"
)

// Option is one subdirective of a block.
type Option struct {
	// Usage is its syntax, for errors. Empty: it is no option, and Read says what to write instead.
	Usage string
	// Read reads its arguments; the dispenser is at its name.
	Read func(d *caddyfile.Dispenser, usage string) error
	// List: the option may be given more than once.
	List bool
}

// ReadBlock reads a block of options; no block is an empty one. The option `@` stands for
// all that begin with @. An unknown option, or one that is given twice without being a
// list, is an error: a misspelt option would otherwise sell by its default.
func ReadBlock(d *caddyfile.Dispenser, options map[string]Option) error {
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
		case twice && !o.List:
			return d.Errf("%s is given twice, first at line %d: write it once", name, line)
		}
		first[key] = d.Line()
		if err := o.Read(d, o.Usage); err != nil {
			return err
		}
		last = name
	}
	return nil
}

// usages returns the names of options in alphabetical order.
func usages(options map[string]Option) []string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(options)), func(name string) bool { return options[name].Usage == "" })
	for i, name := range names {
		if name == "@" {
			names[i] = "@name"
		}
	}
	return names
}

// Arguments returns the rest of the line: from least to most arguments (-1: any number),
// none of them empty.
func Arguments(d *caddyfile.Dispenser, usage string, least, most int) ([]string, error) {
	args := d.RemainingArgs()
	if len(args) < least || most >= 0 && len(args) > most {
		return nil, d.Errf("wrong number of arguments: write `%s`", usage)
	}
	if slices.Contains(args, "") {
		return nil, d.Errf("an argument is empty: write `%s`", usage)
	}
	return args, nil
}

// Text reads one argument.
func Text(into *string) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := Arguments(d, usage, 1, 1)
		if err == nil {
			*into = args[0]
		}
		return err
	}
}

// Texts reads one argument or more.
func Texts(into *[]string) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) (err error) {
		*into, err = Arguments(d, usage, 1, -1)
		return err
	}
}

// Flag reads an option without arguments.
func Flag(into *bool) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		_, err := Arguments(d, usage, 0, 0)
		*into = true
		return err
	}
}

// Duration reads a duration. 0 is an error: in JSON it means the default, and an operator
// who writes 0 does not mean that.
func Duration(into *caddy.Duration) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := Arguments(d, usage, 1, 1)
		if err != nil {
			return err
		}
		*into, err = ParseDuration(d, args[0])
		return err
	}
}

// ParseDuration reads a duration above 0.
func ParseDuration(d *caddyfile.Dispenser, s string) (caddy.Duration, error) {
	dur, err := caddy.ParseDuration(s)
	if err != nil || dur <= 0 {
		return 0, d.Errf("%q is not a duration above 0, such as 500ms or 30s", s)
	}
	return caddy.Duration(dur), nil
}

// Count reads a whole number above 0.
func Count(into *int) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := Arguments(d, usage, 1, 1)
		if err != nil {
			return err
		}
		if *into, err = strconv.Atoi(args[0]); err != nil || *into <= 0 {
			return d.Errf("%q is not a whole number above 0", args[0])
		}
		return nil
	}
}

// IsNumber reports whether text has digits only.
func IsNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Size reads a number of bytes above 0, such as 64KiB or 1GB, up to 1 TiB.
func Size(into *int64) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := Arguments(d, usage, 1, 1)
		if err != nil {
			return err
		}
		size, err := humanize.ParseBytes(args[0])
		if err != nil || size < 1 || size > 1<<40 {
			return d.Errf("%q is not a size above 0, such as 64KiB", args[0])
		}
		*into = int64(size)
		return nil
	}
}
