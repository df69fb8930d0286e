package option

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/caddymodule/gate/option/jwt"
	"github.com/stockgate/stockgate/caddymodule/gate/option/operation"
	"github.com/stockgate/stockgate/caddymodule/gate/option/pow"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/filters/refuse"
)

// AttemptOptions are the options that read and judge an attempt. A gate and a
// stockgate_check have the same ones, with the same defaults.
type AttemptOptions struct {
	operation.Options
	// Name names the gate in logs, for `caddy stockgate try` and in its holds, so that its
	// probe asks about them. Default: none.
	Name string `json:"name,omitempty"`
	// Sale is the sale's id. Default: the open sale that lists the item.
	Sale []string `json:"sale,omitempty"`
	// JWT verifies the shop's bearer token; its claims are values: `{jwt.sub}`.
	JWT jwt.Configs `json:"jwt,omitempty"`
	// Buyer is who buys, 1 to 128 bytes; a check needs none. Required.
	Buyer []string `json:"buyer,omitempty"`
	// Identities are other ways to know the person; each kind once.
	Identities map[string][]string `json:"identities,omitempty"`
	// Region is the region whose stock is sold, where an item has `regions`.
	Region []string `json:"region,omitempty"`
	// Lines are an item and its quantity, 1 if left out. `line` or `lines` is required.
	//
	// A stockgate_check with OneAtATime has none.
	Lines []Line `json:"lines,omitempty"`
	// LinesFrom are all lines of an array, up to 50, all or nothing: of the body, a lookup, or an argument of
	// GraphQL.
	LinesFrom *LinesFrom `json:"lines_from,omitempty"`
	// Deny are lists: attempts in one of them are refused as `denied`.
	//
	// They have client addresses, buyers, phones, e-mail addresses, devices and addresses.
	Deny []string `json:"deny,omitempty"`
	// Allow are lists: attempts in none of them are refused as `not_eligible`, unless `other_items` lets them
	// pass.
	Allow []string `json:"allow,omitempty"`
	// OtherItems: `pass` lets items that no sale lists go on without reservation and token. Default: `refuse`, as
	// `unknown_item`.
	OtherItems string `json:"other_items,omitempty"`
	// Rates bounds how often attempts may come; up to 16. Default: none.
	//
	// They are checked in their order: the rates of this edge before repeats are looked up, the shared rates after
	// that.
	Rates []ratelimit.Rate `json:"rates,omitempty"`
	// Challenge asks clients for computing while more attempts come than usual. Solutions for a check do not serve
	// at the order route. Default: off.
	Challenge *pow.Challenge `json:"challenge,omitempty"`
	// OneAtATime: one request of a session that may change something is at the shop at a time; up to 8 wait, up to 5s, and
	// are then `pending`. `shared`: over all edges. Default: off.
	//
	// It counts for attempts and other requests, so that the cart that was looked up is the one that is sold. A
	// stockgate_check with it does nothing else, and has no lines: it is for routes that change carts, beside the
	// order route.
	OneAtATime *session.Options `json:"one_at_a_time,omitempty"`
	// MaxInFlight bounds attempts that are being reserved or at the shop; more are `busy`. Beyond four times as many clients
	// that read answers, the one that has stalled longest is cut off. Default: 256.
	//
	// An attempt counts until its outcome is known, not until its client has read the answer. A client is cut off
	// only if it has read nothing for at least a second. A stockgate_check limits the attempts that it has let
	// pass and that are not answered; its default is no limit.
	MaxInFlight int `json:"max_in_flight,omitempty"`
	// MaxBody is the largest body of an attempt; then `body_too_large`. Default: 64KiB.
	MaxBody int64 `json:"max_body,omitempty"`
	// Body: with `ignored` the shop does not read an order's body, and it is not checked. Default: `checked`.
	//
	// A checked body from which no value is read is malformed if it could carry the same names in a form that only
	// some servers read.
	Body string `json:"body,omitempty"`
	// Refusals are how refusals look. Status 200 to 599. Default: `problem` (RFC 9457).
	Refusals []refuse.Appearance `json:"refusals,omitempty"`
	// Messages are sentences that count before the global ones. Default: none.
	Messages *directive.Messages `json:"messages,omitempty"`
	// AlsoQuery are query parameters that the shop takes for a route, such as `s`, with the path below which it reads them,
	// where that is not the root: `rest_route=/wp-json`. Default: none.
	//
	// A request that one of them would make a request for this gate is refused.
	AlsoQuery []string `json:"also_query,omitempty"`
	// FastRefusals lets the listener wrapper refuse from memory; `force`: although handlers before the gate do not
	// run then. Default: off.
	FastRefusals *FastRefusals `json:"fast_refusals,omitempty"`
}

// Directives returns the options by their names in a Caddyfile.
func (o *AttemptOptions) Directives() map[string]directive.Option {
	options := o.Options.Directives()
	maps.Copy(options, map[string]directive.Option{
		"jwt":      {Usage: jwt.Usage, Read: jwt.ReadOption(&o.JWT), List: true},
		"sale":     {Usage: "sale <value...>", Read: directive.Texts(&o.Sale)},
		"buyer":    {Usage: "buyer <value...>", Read: directive.Texts(&o.Buyer)},
		"identity": {Usage: "identity phone|email|address|device|ip <value...>", Read: o.readIdentity, List: true},
		"region":   {Usage: "region <value...>", Read: directive.Texts(&o.Region)},
		"line":     {Usage: lineUsage, Read: o.readLine, List: true},
		// all lines of an array, up to 50, all or nothing: of the body, a lookup, or an argument of GraphQL.
		"lines":         {Usage: "lines <array> <sku-field> [<quantity-field>] | {form.<skus>[]} [{form.<quantities>[]}]", Read: o.readLines},
		"rate":          {Usage: "rate <value...> <events> <window> [burst <number>] [keys <number>] [ipv6 <bits>] [shared] [late] [shadow]", Read: ratelimit.ReadRate(&o.Rates), List: true},
		"challenge":     {Usage: "challenge pow { … }", Read: pow.ReadOption(&o.Challenge)},
		"other_items":   {Usage: "other_items refuse|pass", Read: o.readOtherItems},
		"deny":          {Usage: "deny <list...>", Read: accesslist.ReadNames(&o.Deny), List: true},
		"allow":         {Usage: "allow <list...>", Read: accesslist.ReadNames(&o.Allow), List: true},
		"one_at_a_time": {Usage: session.Usage, Read: session.ReadOption(&o.OneAtATime)},
		"max_in_flight": {Usage: "max_in_flight <number>", Read: directive.Count(&o.MaxInFlight)},
		"max_body":      {Usage: "max_body <size>", Read: directive.Size(&o.MaxBody)},
		"body":          {Usage: "body checked|ignored", Read: o.readBody},
		"also_query":    {Usage: "also_query <parameter[=prefix]...>", Read: directive.Texts(&o.AlsoQuery)},
		"fast_refusals": {Usage: "fast_refusals [force] [{ … }]", Read: o.readFast},
		"messages":      {Usage: directive.MessagesUsage, Read: directive.ReadMessages(&o.Messages)},
		"refuse":        {Usage: "refuse [<reason...>|*] problem|error|<status> [<body>]", Read: directive.Refusals(&o.Refusals), List: true},
	})
	return options
}

// ReadName reads the name of a directive, and what stands before it.
func (o *AttemptOptions) ReadName(d *caddyfile.Dispenser) error {
	d.Next()
	directive := d.Val()
	if d.NextArg() {
		o.Name = d.Val()
	}
	if d.NextArg() {
		return d.Errf("%s takes a matcher and a name, found %q after them", directive, d.Val())
	}
	return nil
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

func (o *AttemptOptions) readBody(d *caddyfile.Dispenser, usage string) error {
	if err := directive.Text(&o.Body)(d, usage); err != nil {
		return err
	}
	if o.Body != "checked" && o.Body != "ignored" {
		return d.Errf("body %q: write `%s`", o.Body, usage)
	}
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

// checkOtherItems reports a word that is none.
func (s *Setup) checkOtherItems() error {
	if !slices.Contains([]string{"", "refuse", "pass"}, s.OtherItems) {
		return fmt.Errorf("other_items %q: there are refuse and pass", s.OtherItems)
	}
	return nil
}

// checkSlots reports a number of slots that cannot be.
func (s *Setup) checkSlots() error {
	if s.MaxInFlight < 0 {
		return errors.New("max_in_flight must be positive")
	}
	return nil
}
