package gate

import (
	"maps"
	"math"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/stockgate/stockgate/caddymodule/accesslist"
	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/jwt"
	"github.com/stockgate/stockgate/caddymodule/pow"
	"github.com/stockgate/stockgate/caddymodule/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/session"
)

// directives returns the options by their names in a Caddyfile.
func (o *AttemptOptions) directives() map[string]directive.Option {
	options := o.Options.Directives()
	maps.Copy(options, map[string]directive.Option{
		"jwt":           {Usage: jwt.Usage, Read: jwt.ReadOption(&o.JWT)},
		"sale":          {Usage: "sale <value...>", Read: directive.Texts(&o.Sale)},
		"buyer":         {Usage: "buyer <value...>", Read: directive.Texts(&o.Buyer)},
		"identity":      {Usage: "identity phone|address|device|ip <value...>", Read: o.readIdentity, List: true},
		"region":        {Usage: "region <value...>", Read: directive.Texts(&o.Region)},
		"line":          {Usage: "line <sku> [<quantity>]", Read: o.readLine, List: true},
		"lines":         {Usage: "lines <array> <sku-field> [<quantity-field>]", Read: o.readLines},
		"rate":          {Usage: "rate <value...> <events> <window> [burst <number>] [keys <number>] [ipv6 <bits>] [shared] [late] [shadow]", Read: ratelimit.ReadRate(&o.Rates), List: true},
		"challenge":     {Usage: "challenge pow { … }", Read: pow.ReadOption(&o.Challenge)},
		"other_items":   {Usage: "other_items refuse|pass", Read: o.readOtherItems},
		"deny":          {Usage: "deny <list...>", Read: accesslist.ReadNames(&o.Deny), List: true},
		"allow":         {Usage: "allow <list...>", Read: accesslist.ReadNames(&o.Allow), List: true},
		"one_at_a_time": {Usage: session.Usage, Read: session.ReadOption(&o.OneAtATime)},
		"max_in_flight": {Usage: "max_in_flight <number>", Read: directive.Count(&o.MaxInFlight)},
		"max_body":      {Usage: "max_body <size>", Read: o.readMaxBody},
		"body":          {Usage: "body checked|ignored", Read: o.readBody},
		"also_query":    {Usage: "also_query <parameter...>", Read: directive.Texts(&o.AlsoQuery)},
		"fast_refusals": {Usage: "fast_refusals [force] [{ … }]", Read: o.readFast},
		"refuse":        {Usage: "refuse [<reason...>|*] problem|error|<status> [<body>]", Read: directive.Refusals(&o.Refusals), List: true},
	})
	return options
}

func (o *AttemptOptions) readIdentity(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 2, -1)
	if err != nil {
		return err
	}
	kind, values := args[0], args[1:]
	if _, twice := o.Identities[kind]; twice {
		return d.Errf("identity %s is given twice: write all its values in one line, the first that is not empty counts", kind)
	}
	if o.Identities == nil {
		o.Identities = make(map[string][]string)
	}
	o.Identities[kind] = values
	return nil
}

func (o *AttemptOptions) readLine(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 2)
	if err != nil {
		return err
	}
	line := Line{SKU: args[:1]}
	if len(args) == 2 {
		line.Quantity = args[1:]
	}
	o.Lines = append(o.Lines, line)
	return nil
}

func (o *AttemptOptions) readLines(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 2, 3)
	if err != nil {
		return err
	}
	o.LinesFrom = &LinesFrom{Array: args[0], SKU: args[1]}
	if len(args) == 3 {
		o.LinesFrom.Quantity = args[2]
	}
	return nil
}

func (o *AttemptOptions) readBody(d *caddyfile.Dispenser, usage string) error {
	if err := directive.Text(&o.Body)(d, usage); err != nil {
		return err
	}
	if o.Body != "checked" && o.Body != "ignored" {
		return d.Errf("body %q: write `%s`", o.Body, usage)
	}
	return nil
}

func (o *AttemptOptions) readMaxBody(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 1)
	if err != nil {
		return err
	}
	size, err := humanize.ParseBytes(args[0])
	if err != nil || size == 0 || size > math.MaxInt64 {
		return d.Errf("%q is not a size above 0, such as 64KiB", args[0])
	}
	o.MaxBody = int64(size)
	return nil
}

func (o *AttemptOptions) readOtherItems(d *caddyfile.Dispenser, usage string) error {
	if err := directive.Text(&o.OtherItems)(d, usage); err != nil {
		return err
	}
	if o.OtherItems != "refuse" && o.OtherItems != "pass" {
		return d.Errf("other_items %q: write `%s`", o.OtherItems, usage)
	}
	return nil
}

// readFast reads the option fast_refusals.
func (o *AttemptOptions) readFast(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 0, 1)
	if err != nil {
		return err
	}
	if len(args) == 1 && args[0] != "force" {
		return d.Errf("%q is no way to refuse fast: write `%s`", args[0], usage)
	}
	fast := &FastRefusals{Force: len(args) == 1}
	o.FastRefusals = fast
	return directive.ReadBlock(d, map[string]directive.Option{"log": {Usage: "log <percentage>", Read: fast.readLog}})
}

// readLog reads which share of the fast refusals is logged.
func (f *FastRefusals) readLog(d *caddyfile.Dispenser, usage string) error {
	if err := directive.Text(&f.Log)(d, usage); err != nil {
		return err
	}
	if _, err := accesslog.ParseShare(f.Log); err != nil {
		return d.WrapErr(err)
	}
	return nil
}
