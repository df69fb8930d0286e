package selling

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/gate/option/inquiry"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/gate/option/waiting"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// Directives returns the options by their names in a Caddyfile, and what checks them when all are read.
func (o *SellingOptions) Directives() (options map[string]directive.Option, check func() error) {
	rules := ruleReader{options: o}
	return map[string]directive.Option{
		"ref":             {Usage: "ref <value...> [shared]", Read: o.readRef},
		"continue":        {Usage: "continue", Read: directive.Flag(&o.Continue)},
		"lookup":          {Usage: inquiry.LookupUsage, Read: inquiry.ReadLookup(&o.Lookup)},
		"repeats":         {Usage: ratelimit.RepeatsUsage, Read: ratelimit.ReadRepeats(&o.Repeats)},
		"idempotency":     {Usage: "idempotency <value...>", Read: directive.Texts(&o.Idempotency)},
		"idempotency_ttl": {Usage: "idempotency_ttl <duration>", Read: directive.Duration(&o.IdempotencyTTL)},
		"outcome":         {Usage: "outcome response|backend|ask …", Read: o.readOutcome},
		"@":               {Usage: "@<name> { … }", Read: o.readAnswer, List: true},
		// answers that confirm the reservation. Not with `outcome backend`. Default: `2xx`.
		"confirm": {Usage: "confirm <code|class|@name...>", Read: rules.read("confirm"), List: true},
		// answers that release it. Default: `4xx` except 408, 409 and 499; with `outcome backend` none.
		"release":         {Usage: "release <code|class|@name...>", Read: rules.read("release"), List: true},
		"in_doubt":        {Usage: inDoubtUsage, Read: rules.readInDoubt},
		"queue":           {Usage: waiting.Usage, Read: waiting.ReadOption(&o.Queue)},
		"hold_for":        {Usage: "hold_for <duration>", Read: directive.Duration(&o.HoldFor)},
		"max_answer":      {Usage: "max_answer <size>", Read: directive.Size(&o.MaxAnswer)},
		"forward_timeout": {Usage: "forward_timeout <duration>", Read: directive.Duration(&o.ForwardTimeout)},
		"shadow":          {Usage: "shadow", Read: directive.Flag(&o.Shadow)},
		"exits_as":        {Usage: "exits_as <path...>", Read: directive.Texts(&o.ExitsAs)},
	}, rules.check
}

func (o *SellingOptions) readOutcome(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, -1)
	if err != nil {
		return err
	}
	if o.Outcome = args[0]; o.Outcome == "ask" {
		return inquiry.ReadAsk(d, args[1:], &o.Ask)
	}
	if len(args) > 1 {
		return d.Errf("wrong number of arguments: write `%s`", usage)
	}
	if o.Outcome != "response" && o.Outcome != "backend" {
		return d.Errf("outcome %q is not supported: write `%s`", o.Outcome, usage)
	}
	return nil
}

// readRef reads where the ref is found. A ref has no constants, so that its last word may
// say that it is shared.
func (o *SellingOptions) readRef(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, -1)
	if err != nil {
		return err
	}
	if last := len(args) - 1; args[last] == "shared" {
		o.RefShared, args = true, args[:last]
	}
	if len(args) == 0 {
		return d.Errf("ref has no value: write `%s`", usage)
	}
	o.Ref = args
	return nil
}
