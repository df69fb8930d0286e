package ratelimit

import (
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadRate reads a rate. The number of events is the first whole number after the first
// value; the key ends before it.
func ReadRate(into *[]Rate) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, usage string) error {
		args, err := directive.Arguments(d, usage, 3, -1)
		if err != nil {
			return err
		}
		rate := Rate{Key: args[:1]}
		for args = args[1:]; len(args) > 0 && !directive.IsNumber(args[0]); args = args[1:] {
			rate.Key = append(rate.Key[:len(rate.Key):len(rate.Key)], args[0])
		}
		if len(args) < 2 {
			return d.Errf("rate does not say how many attempts may come in what time: write `%s`", usage)
		}
		if err := rate.readNumbers(d, "rate", args); err != nil {
			return err
		}
		if err := rate.readOptions(d, "rate", usage, args[2:]); err != nil {
			return err
		}
		*into = append(*into, rate)
		return nil
	}
}

// readNumbers reads events and window.
func (r *Rate) readNumbers(d *caddyfile.Dispenser, name string, args []string) (err error) {
	if r.Events, err = rateNumber(d, name+": ", args[0], maxRateEvents); err == nil {
		r.Window, err = directive.ParseDuration(d, args[1])
	}
	return err
}

// readOptions reads what follows the window, in any order. of is rate or repeats; repeats
// has fewer options.
func (r *Rate) readOptions(d *caddyfile.Dispenser, of, usage string, args []string) error {
	type bounded struct {
		into *int
		most int
	}
	numbers := map[string]bounded{"burst": {&r.Burst, maxRateEvents}, "keys": {&r.Keys, maxRateKeys}}
	if of == "rate" {
		numbers["ipv6"] = bounded{&r.IPv6Prefix, 128}
	}
	flags := map[string]*bool{}
	if of == "rate" {
		flags = map[string]*bool{"shared": &r.Shared, "late": &r.Late, "shadow": &r.Shadow}
	}
	for len(args) > 0 {
		name := args[0]
		number, ok := numbers[name]
		flag := flags[name]
		switch {
		case flag != nil && !*flag:
			*flag = true
			args = args[1:]
			continue
		case flag != nil || ok && *number.into != 0:
			return d.Errf("%s: %s is given twice", of, name)
		case !ok:
			return d.Errf("%s: there is no option %q: write `%s`", of, name, usage)
		case len(args) == 1:
			return d.Errf("%s: %s has no number: write `%s`", of, name, usage)
		}
		var err error
		if *number.into, err = rateNumber(d, of+": "+name+" ", args[1], number.most); err != nil {
			return err
		}
		args = args[2:]
	}
	return nil
}

func rateNumber(d *caddyfile.Dispenser, what, text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, d.Errf("%s%q is not a whole number from 1 to %d", what, text, most)
	}
	return n, nil
}
