package gate

import (
	"maps"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/gate/option/accesslist"
	"github.com/stockgate/stockgate/caddymodule/gate/option/jwt"
	"github.com/stockgate/stockgate/caddymodule/gate/option/operation"
	"github.com/stockgate/stockgate/caddymodule/gate/option/pow"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/gate/option/session"
	"github.com/stockgate/stockgate/caddymodule/internal/accesslog"
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
	// Sale gives the sale's id. Default: the open sale that lists the item.
	Sale []string `json:"sale,omitempty"`
	// JWT verifies the shop's own bearer token, whose claims are then available as values:
	// `{jwt.sub}`.
	JWT jwt.Configs `json:"jwt,omitempty"`
	// Buyer gives the buyer. A gate requires it. Default, of a stockgate_check: unknown.
	Buyer []string `json:"buyer,omitempty"`
	// Identities give further ways to recognize a buyer, by kind: phone, email, address,
	// device, ip.
	Identities map[string][]string `json:"identities,omitempty"`
	// Region gives the region whose stock the attempt uses.
	Region []string `json:"region,omitempty"`
	// Lines are the items to buy, one line each. Required, unless LinesFrom is given, or
	// OneAtATime in a stockgate_check.
	Lines []Line `json:"lines,omitempty"`
	// LinesFrom reads the lines from an array in a JSON body, in what a lookup says, or in an argument
	// of GraphQL.
	LinesFrom *LinesFrom `json:"lines_from,omitempty"`
	// Deny names lists: an attempt whose client IP, buyer, phone, e-mail address, device or address is in
	// one of them is refused as denied.
	Deny []string `json:"deny,omitempty"`
	// Allow names lists: an attempt that is in none of them is refused as not_eligible. They
	// do not apply to attempts that OtherItems lets pass.
	Allow []string `json:"allow,omitempty"`
	// OtherItems says what happens to an attempt whose items no sale lists: refuse
	// (unknown_item), or pass: it goes on without a reservation and without a token.
	// Default: refuse.
	OtherItems string `json:"other_items,omitempty"`
	// Rates limit how often attempts may come, at most 16 rates. They are checked in their
	// order: the rates of this edge before repeats are looked up, the shared rates after
	// that. Default: none.
	Rates []ratelimit.Rate `json:"rates,omitempty"`
	// Challenge asks for a proof of work while more attempts come than usual. The solutions
	// for a stockgate_check are not valid at the order route. Default: none.
	Challenge *pow.Challenge `json:"challenge,omitempty"`
	// OneAtATime lets one request of a session that may change something be at the shop at a
	// time, be it an attempt or not, so that the cart that was looked up is the one that is
	// sold. Others wait, up to 8 of them for at most 5s, and are then refused as pending. A
	// stockgate_check with it does nothing else, and has no lines: it is for routes that change
	// carts, beside the order route. Default: none.
	OneAtATime *session.Options `json:"one_at_a_time,omitempty"`
	// MaxInFlight limits the attempts that are being reserved or forwarded at the same time.
	// An attempt counts until its outcome is known, not until its client has read the
	// answer. Four times as many clients may be reading answers; above that, the client that
	// has read nothing for the longest time, and for at least a second, is cut off. Default:
	// 256. A stockgate_check limits the attempts that it has let pass and that are not
	// answered; default: no limit. More are refused as busy.
	MaxInFlight int `json:"max_in_flight,omitempty"`
	// MaxBody limits an attempt's body in bytes. Default: 64 KiB.
	MaxBody int64 `json:"max_body,omitempty"`
	// Body says what happens to a body from which no value is read, where values are read
	// from the query. checked: a body that could carry the same names in a form that only
	// some servers read is malformed. ignored: the shop does not read the body of an order,
	// so it is not checked. Default: checked.
	Body string `json:"body,omitempty"`
	// Refusals change how refusals look. A style that names a reason counts more than
	// `*`; of two alike the last one counts. Default: problems (RFC 9457).
	Refusals []refuse.Appearance `json:"refusals,omitempty"`
	// Messages are sentences of refusals that count more than the app's. Default: none.
	Messages *directive.Messages `json:"messages,omitempty"`
	// AlsoQuery names query parameters that the shop takes for the path of a route, such as
	// rest_route of WordPress or s of ThinkPHP; with the path below which the shop reads its
	// value, as in rest_route=/wp-json, where that is not the root. A request that one of them
	// would make a request for this gate is refused. Default: none.
	AlsoQuery []string `json:"also_query,omitempty"`
	// FastRefusals lets the listener wrapper stockgate answer what is refused from memory,
	// before Caddy's HTTP server reads it. Default: none.
	FastRefusals *FastRefusals `json:"fast_refusals,omitempty"`
}

// directives returns the options by their names in a Caddyfile.
func (o *AttemptOptions) directives() map[string]directive.Option {
	options := o.Options.Directives()
	maps.Copy(options, map[string]directive.Option{
		"jwt":           {Usage: jwt.Usage, Read: jwt.ReadOption(&o.JWT), List: true},
		"sale":          {Usage: "sale <value...>", Read: directive.Texts(&o.Sale)},
		"buyer":         {Usage: "buyer <value...>", Read: directive.Texts(&o.Buyer)},
		"identity":      {Usage: "identity phone|email|address|device|ip <value...>", Read: o.readIdentity, List: true},
		"region":        {Usage: "region <value...>", Read: directive.Texts(&o.Region)},
		"line":          {Usage: lineUsage, Read: o.readLine, List: true},
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
