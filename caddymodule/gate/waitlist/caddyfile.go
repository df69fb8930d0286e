package waitlist

import (
	"cmp"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/stockgate/stockgate/caddymodule/gate/option"
	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// ReadDirective reads a stockgate_waitlist, with the warnings of a gate.
func ReadDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	return option.ReadDirective(h, func() *WaitlistHandler { return new(WaitlistHandler) }, nil)
}

// UnmarshalCaddyfile reads a stockgate_waitlist. Syntax:
//
//	stockgate_waitlist [<matcher>] [<name>] {
//		graphql   [query.]<field> [<argument> <value...>]
//		json_body <path> [<value...>]
//		persisted <file>
//		line     <sku> [<quantity> [absent 0|1]]
//		lines    <array> <sku-field> [<quantity-field>]
//		buyer    <value...>
//		identity phone|email|address|device|ip <value...>
//		jwt      …
//		sale     <value...>
//		region   <value...>
//		deny     <list...>
//		allow    <list...>
//		rate     …
//		challenge pow { … }
//		other_items refuse|pass
//		lookup   [GET|POST] <url> [<body>] { … }
//		ref      <value...>
//		max_body <size>
//		body     checked|ignored
//		also_query <parameter[=prefix]...>
//		refuse   …
//		messages …
//		fast_refusals …
//	}
//
// The options are the gate's.
func (l *WaitlistHandler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	if err := l.ReadName(d); err != nil {
		return err
	}
	at := *d
	options := l.Directives()
	for _, not := range []string{"one_at_a_time", "max_in_flight", "websockets"} {
		delete(options, not)
	}
	options["lookup"] = directive.Option{Usage: inquiry.LookupUsage, Read: inquiry.ReadLookup(&l.Lookup)}
	options["ref"] = directive.Option{Usage: "ref <value...>", Read: directive.Texts(&l.Ref)}
	if err := directive.ReadBlock(d, options); err != nil {
		return err
	}
	return directive.WrapOption(at, cmp.Or(l.conflict(), l.Bind().Conflict()))
}

// Interface guard
var _ caddyfile.Unmarshaler = (*WaitlistHandler)(nil)
