package app

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// readOutbox reads the outbox's receiver.
func (a *App) readOutbox(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 1)
	if err != nil {
		return err
	}
	at := *d
	o := &Outbox{URL: args[0]}
	err = directive.ReadBlock(d, map[string]directive.Option{
		"secret": {Usage: "secret <secret>", List: true, Read: func(d *caddyfile.Dispenser, usage string) error {
			args, err := directive.Arguments(d, usage, 1, 1)
			o.Secrets = append(o.Secrets, args...)
			return err
		}},
		"batch":   {Usage: "batch <number>", Read: directive.Count(&o.Batch)},
		"timeout": {Usage: "timeout <duration>", Read: directive.Duration(&o.Timeout)},
		"sales":   {Usage: "sales <sale...>", Read: directive.Texts(&o.Sales)},
		"kinds":   {Usage: "kinds <kind...>", Read: directive.Texts(&o.Kinds)},
	})
	if err != nil {
		return err
	}
	if len(o.Secrets) == 0 {
		return at.Errf("outbox has no secret: write `secret {env.OUTBOX_SECRET}` in its block")
	}
	a.Outbox = o
	return nil
}
