package caddymodule

import (
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// readRate reads a rate. Its key ends at the first whole number after the first
// value: the events.
func (g *Gate) readRate(d *caddyfile.Dispenser, usage string) error {
	args, err := arguments(d, usage, 3, -1)
	if err != nil {
		return err
	}
	rate := Rate{Key: args[:1]}
	for args = args[1:]; len(args) > 0 && !isNumber(args[0]); args = args[1:] {
		rate.Key = append(rate.Key[:len(rate.Key):len(rate.Key)], args[0])
	}
	if len(args) < 2 {
		return d.Errf("rate does not say how many attempts may come in what time: write `%s`", usage)
	}
	if rate.Events, err = rateNumber(d, "", args[0], maxRateEvents); err != nil {
		return err
	}
	if rate.Window, err = parseDuration(d, args[1]); err != nil {
		return err
	}
	if err := rate.readOptions(d, usage, args[2:]); err != nil {
		return err
	}
	g.Rates = append(g.Rates, rate)
	return nil
}

// readOptions reads what follows the window, in any order.
func (r *Rate) readOptions(d *caddyfile.Dispenser, usage string, args []string) error {
	numbers := map[string]struct {
		into *int
		most int
	}{"burst": {&r.Burst, maxRateEvents}, "keys": {&r.Keys, maxRateKeys}, "ipv6": {&r.IPv6Prefix, 128}}
	for len(args) > 0 {
		name := args[0]
		number, ok := numbers[name]
		switch {
		case name == "shared" && !r.Shared:
			r.Shared = true
			args = args[1:]
			continue
		case name == "shared" || ok && *number.into != 0:
			return d.Errf("rate: %s is given twice", name)
		case !ok:
			return d.Errf("rate: there is no option %q: write `%s`", name, usage)
		case len(args) == 1:
			return d.Errf("rate: %s has no number: write `%s`", name, usage)
		}
		var err error
		if *number.into, err = rateNumber(d, name+" ", args[1], number.most); err != nil {
			return err
		}
		args = args[2:]
	}
	return nil
}

func rateNumber(d *caddyfile.Dispenser, what, text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, d.Errf("rate: %s%q is not a whole number from 1 to %d", what, text, most)
	}
	return n, nil
}
