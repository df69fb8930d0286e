package caddymodule

import (
	"math"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"
)

// UnmarshalCaddyfile reads a gate. Syntax:
//
//	stockgate [<matcher>] [<name>] {
//		check
//		jwt      <jwks-url> | hmac <secret> | ed25519 <pem|file> {
//			issuer   <name>
//			audience <name>
//			cookie   <name>
//			leeway   <duration>
//		}
//		sale     <value...>
//		buyer    <value...>
//		identity phone|address|device|ip <value...>
//		region   <value...>
//		line     <sku> [<quantity>]
//		lines    <array> <sku-field> [<quantity-field>]
//		rate     <value...> <events> <window> [burst <number>] [keys <number>] [ipv6 <bits>] [shared]
//		challenge pow {
//			above  <attempts> <window>
//			bits   <least> <most>
//			header <field>
//			cookie <name>
//		}
//		other_items refuse|pass
//		deny     <list...>
//		allow    <list...>
//		ref      <value...> [shared]
//		repeats  <events> <window> [burst <number>] [keys <number>]
//		idempotency     <value...>
//		idempotency_ttl <duration>
//		outcome  response|backend
//		@<name> {
//			status <code|class...>
//			header <field> [<value...>]
//			json   <path> [<value...>]
//			json   !<path>
//		}
//		confirm  <code|class|@name...>
//		release  <code|class|@name...>
//		in_doubt keep
//		in_doubt probe <url> {
//			confirm <code|class|@name...>
//			release <code|class|@name...>
//			every   <duration>
//			longest <duration>
//			tries   <number>
//			timeout <duration>
//			header  <field> <value>
//		}
//		hold_for        <duration>
//		forward_timeout <duration>
//		max_in_flight   <number>
//		max_body        <size>
//		body            checked|ignored
//		also_query      <parameter...>
//		exits_as        <path...>
//		fast_refusals [force]
//		refuse [<reason...>|*] problem|error
//		refuse <reason...>|*   <status> [<body>]
//		refuse <reason...>|*   <body>
//	}
//
// identity, line, rate, deny, allow, @<name>, confirm, release and refuse may be given more
// than once. With check, what is about reservations (ref to max_in_flight) is an error;
// with outcome backend, confirm is one: the shop confirms through stockgate_api.
func (g *Gate) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		g.Name = d.Val()
	}
	if d.NextArg() {
		return d.Errf("stockgate takes a matcher and a name, found %q after them", d.Val())
	}
	at := *d // where the gate is, for errors about all of it
	rules := gateRules{gate: g}
	err := readBlock(d, map[string]option{
		"check":           {usage: "check", read: flag(&g.Check)},
		"jwt":             {usage: jwtUsage, read: readJWT(&g.JWT)},
		"sale":            {usage: "sale <value...>", read: texts(&g.Sale)},
		"buyer":           {usage: "buyer <value...>", read: texts(&g.Buyer)},
		"identity":        {usage: "identity phone|address|device|ip <value...>", read: g.readIdentity, list: true},
		"region":          {usage: "region <value...>", read: texts(&g.Region)},
		"line":            {usage: "line <sku> [<quantity>]", read: g.readLine, list: true},
		"lines":           {usage: "lines <array> <sku-field> [<quantity-field>]", read: g.readLines},
		"rate":            {usage: "rate <value...> <events> <window> [burst <number>] [keys <number>] [ipv6 <bits>] [shared]", read: readRate(&g.Rates), list: true},
		"challenge":       {usage: "challenge pow { … }", read: readChallenge(&g.Challenge)},
		"other_items":     {usage: "other_items refuse|pass", read: g.readOtherItems},
		"deny":            {usage: "deny <list...>", read: listNames(&g.Deny), list: true},
		"allow":           {usage: "allow <list...>", read: listNames(&g.Allow), list: true},
		"ref":             {usage: "ref <value...> [shared]", read: g.readRef},
		"repeats":         {usage: repeatsUsage, read: readRepeats(&g.Repeats)},
		"idempotency":     {usage: "idempotency <value...>", read: texts(&g.Idempotency)},
		"idempotency_ttl": {usage: "idempotency_ttl <duration>", read: duration(&g.IdempotencyTTL)},
		"outcome":         {usage: "outcome response|backend", read: g.readOutcome},
		"@":               {usage: "@<name> { … }", read: g.readAnswer, list: true},
		"confirm":         {usage: "confirm <code|class|@name...>", read: rules.read("confirm"), list: true},
		"release":         {usage: "release <code|class|@name...>", read: rules.read("release"), list: true},
		"in_doubt":        {usage: inDoubtUsage, read: rules.readInDoubt},
		"hold_for":        {usage: "hold_for <duration>", read: duration(&g.HoldFor)},
		"forward_timeout": {usage: "forward_timeout <duration>", read: duration(&g.ForwardTimeout)},
		"max_in_flight":   {usage: "max_in_flight <number>", read: count(&g.MaxInFlight)},
		"max_body":        {usage: "max_body <size>", read: g.readMaxBody},
		"body":            {usage: "body checked|ignored", read: g.readBody},
		"also_query":      {usage: "also_query <parameter...>", read: texts(&g.AlsoQuery)},
		"exits_as":        {usage: "exits_as <path...>", read: texts(&g.ExitsAs)},
		"fast_refusals":   {usage: "fast_refusals [force]", read: g.readFast},
		"refuse":          {usage: "refuse [<reason...>|*] problem|error|<status> [<body>]", read: g.readRefuse, list: true},
	})
	if err != nil {
		return err
	}
	if g.Check {
		if err := g.checkConflict(); err != nil {
			return at.WrapErr(err)
		}
	}
	if err := g.outcomeConflict(); err != nil {
		return at.WrapErr(err)
	}
	return rules.check()
}

func (g *Gate) readIdentity(d *caddyfile.Dispenser, usage string) error {
	args, err := arguments(d, usage, 2, -1)
	if err != nil {
		return err
	}
	kind, values := args[0], args[1:]
	if _, twice := g.Identities[kind]; twice {
		return d.Errf("identity %s is given twice: write all its values in one line, the first that is not empty counts", kind)
	}
	if g.Identities == nil {
		g.Identities = make(map[string][]string)
	}
	g.Identities[kind] = values
	return nil
}

func (g *Gate) readLine(d *caddyfile.Dispenser, usage string) error {
	args, err := arguments(d, usage, 1, 2)
	if err != nil {
		return err
	}
	line := Line{SKU: args[:1]}
	if len(args) == 2 {
		line.Quantity = args[1:]
	}
	g.Lines = append(g.Lines, line)
	return nil
}

func (g *Gate) readLines(d *caddyfile.Dispenser, usage string) error {
	args, err := arguments(d, usage, 2, 3)
	if err != nil {
		return err
	}
	g.LinesFrom = &LinesFrom{Array: args[0], SKU: args[1]}
	if len(args) == 3 {
		g.LinesFrom.Quantity = args[2]
	}
	return nil
}

func (g *Gate) readOutcome(d *caddyfile.Dispenser, usage string) error {
	if err := text(&g.Outcome)(d, usage); err != nil {
		return err
	}
	if g.Outcome != "response" && g.Outcome != "backend" {
		return d.Errf("outcome %q is not supported: write `%s`", g.Outcome, usage)
	}
	return nil
}

func (g *Gate) readBody(d *caddyfile.Dispenser, usage string) error {
	if err := text(&g.Body)(d, usage); err != nil {
		return err
	}
	if g.Body != "checked" && g.Body != "ignored" {
		return d.Errf("body %q: write `%s`", g.Body, usage)
	}
	return nil
}

// readRef reads where the ref is found. A ref has no constants, so that its last word may
// say that it is shared.
func (g *Gate) readRef(d *caddyfile.Dispenser, usage string) error {
	args, err := arguments(d, usage, 1, -1)
	if err != nil {
		return err
	}
	if last := len(args) - 1; args[last] == "shared" {
		g.RefShared, args = true, args[:last]
	}
	if len(args) == 0 {
		return d.Errf("ref has no value: write `%s`", usage)
	}
	g.Ref = args
	return nil
}

func (g *Gate) readMaxBody(d *caddyfile.Dispenser, usage string) error {
	args, err := arguments(d, usage, 1, 1)
	if err != nil {
		return err
	}
	size, err := humanize.ParseBytes(args[0])
	if err != nil || size == 0 || size > math.MaxInt64 {
		return d.Errf("%q is not a size above 0, such as 64KiB", args[0])
	}
	g.MaxBody = int64(size)
	return nil
}
