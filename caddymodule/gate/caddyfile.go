package gate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadDirective reads a gate, and warns about settings that are allowed but rarely intended.
func ReadDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	return option.ReadDirective(h, func() *Gate { return new(Gate) }, func(at *caddyfile.Dispenser, g *Gate, matchers caddy.ModuleMap) error {
		if err := directive.CheckTwice(h, at, g.Name, matchers); err != nil {
			return err
		}
		return checkPlaces(h, g)
	})
}

// CheckStatic is the part of Provision that depends on the gate's options alone.
func (g *Gate) CheckStatic() error {
	if err := g.Judge.CheckStatic(); err != nil {
		return err
	}
	if err := g.terms.Check(g.KnowsNames(), g.Log()); err != nil {
		return err
	}
	_, err := guard.ExitPaths(g.ExitsAs)
	return err
}

// UnmarshalCaddyfile reads a gate. Syntax:
//
//	stockgate [<matcher>] [<name>] {
//		graphql   [query.]<field> [<argument> <value...>]
//		json_body <path> [<value...>]
//		persisted <file>
//		websockets pass
//		jwt      <jwks-url> | hmac <secret> | ed25519 <pem|file> {
//			issuer   <name>
//			audience <name>
//			cookie   <name>
//			leeway   <duration>
//		}
//		sale     <value...>
//		buyer    <value...>
//		identity phone|email|address|device|ip <value...>
//		region   <value...>
//		line     <sku> [<quantity> [absent 0|1]]
//		lines    <array> <sku-field> [<quantity-field>]
//		rate     <value...> <events> <window> [burst <number>] [keys <number>] [ipv6 <bits>] [shared] [late] [shadow]
//		challenge pow {
//			above  <attempts> <window>
//			bits   <least> <most>
//			header <field>
//			cookie <name>
//		}
//		other_items refuse|pass
//		deny     <list...>
//		allow    <list...>
//		one_at_a_time [shared] <credential...> [except <path|@matcher...>]
//		lookup   [GET|POST] <url> [<body>] {
//			at_once <number>
//			queue   <number>
//			wait    <duration>
//			timeout <duration>
//		}
//		ref      <value...> [shared]
//		repeats  <events> <window> [burst <number>] [keys <number>]
//		idempotency     <value...>
//		idempotency_ttl <duration>
//		outcome  response|backend
//		outcome  ask [GET|POST] <url> [<body>] {
//			lines    <array> <sku-field> <quantity-field>
//			payments sync
//			at_once  <number>
//			queue    <number>
//			wait     <duration>
//			timeout  <duration>
//		}
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
//		queue {
//			pace      <orders> [<per>]
//			at_once   <orders>
//			wait      <duration>
//			most      <orders>
//			memory    <size>
//			longest   <duration>
//			keep      <duration>
//			max_body  <size>
//			again     @<name>
//			orders_at <path>
//		}
//		hold_for        <duration>
//		max_answer      <size>
//		forward_timeout <duration>
//		max_in_flight   <number>
//		max_body        <size>
//		body            checked|ignored
//		also_query      <parameter[=prefix]...>
//		exits_as        <path...>
//		shadow
//		fast_refusals [force] {
//			log <percentage>
//		}
//		refuse [<reason...>|*] problem|error
//		refuse <reason...>|*   <status> [<body>]
//		refuse <reason...>|*   <body>
//		messages [<file>] {
//			languages <tag...>
//		}
//	}
//
// graphql, json_body, identity, line, rate, deny, allow, @<name>, confirm, release and refuse may be given more
// than once. With outcome backend, confirm is an error: the shop confirms through stockgate_api.
func (g *Gate) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	if err := g.ReadName(d); err != nil {
		return err
	}
	at := *d // where the gate is, for errors about all of it
	options := g.AttemptOptions.Directives()
	own, check := g.SellingOptions.Directives()
	maps.Copy(options, own)
	options["check"] = directive.Option{Read: func(d *caddyfile.Dispenser, _ string) error { return d.WrapErr(errCheck) }} // no option, see Gate.Check
	if err := directive.ReadBlock(d, options); err != nil {
		return err
	}
	if err := cmp.Or(g.Bind().Conflict(), g.terms.OutcomeConflict()); err != nil {
		return directive.WrapOption(at, err)
	}
	return check()
}

// checkPlaces refuses a queue whose buyers cannot ask where their orders stand. The sites that
// invoke a named route are not known here.
func checkPlaces(h httpcaddyfile.Helper, g *Gate) error {
	block := directive.BlockOf(&h)
	if g.Queue == nil || block == nil || block.IsNamedRoute {
		return nil
	}
	for _, s := range block.Segments {
		if slices.ContainsFunc(s, func(t caddyfile.Token) bool { return t.Text == "stockgate_status" }) {
			return nil
		}
	}
	return h.Err("queue: buyers ask at /orders of stockgate_status where their orders stand: add `stockgate_status` to the site")
}
