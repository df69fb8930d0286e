package caddymodule

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// readOutbox reads whom the outbox tells.
func (a *App) readOutbox(d *caddyfile.Dispenser, usage string) error {
	args, err := arguments(d, usage, 1, 1)
	if err != nil {
		return err
	}
	at := *d
	o := &Outbox{URL: args[0]}
	err = readBlock(d, map[string]option{
		"secret": {usage: "secret <secret>", list: true, read: func(d *caddyfile.Dispenser, usage string) error {
			args, err := arguments(d, usage, 1, 1)
			o.Secrets = append(o.Secrets, args...)
			return err
		}},
		"batch":   {usage: "batch <number>", read: count(&o.Batch)},
		"timeout": {usage: "timeout <duration>", read: duration(&o.Timeout)},
		"sales":   {usage: "sales <sale...>", read: texts(&o.Sales)},
		"kinds":   {usage: "kinds <kind...>", read: texts(&o.Kinds)},
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
