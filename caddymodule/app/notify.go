package app

import (
	"context"
	"errors"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

// NotifyModule is the module stockgate.notify: it tells operators what happens in a sale.
type NotifyModule interface {
	// Open returns what tells them of an app. It tells nothing before its Start.
	Open(a *App) Notifier
}

// Notifier tells operators what happens, while its app runs.
type Notifier interface {
	Part
	// Test sends a message at once, and returns the receiver's answer.
	Test(ctx context.Context) (adminapi.NotifyTested, error)
	// Trouble is why the receiver does not get what it should, as far as this edge knows; empty: it does.
	Trouble() string
	// Examine adds what the doctor says.
	Examine(ctx context.Context, d *adminapi.Diagnosis)
}

const notifyModule = "stockgate.notify"

var errNoNotify = errors.New("notify: this Caddy was built without it: build it with github.com/stockgate/stockgate/caddymodule/notify, or leave notify out")

// provisionNotify loads the module.
func (a *App) provisionNotify(ctx caddy.Context) error {
	if len(a.NotifyRaw) == 0 {
		return nil
	}
	if _, err := caddy.GetModule(notifyModule); err != nil {
		return errNoNotify
	}
	loaded, err := ctx.LoadModuleByID(notifyModule, a.NotifyRaw)
	if err != nil {
		return err
	}
	a.notifier = loaded.(NotifyModule).Open(a)
	a.Part(notifyModule, func() Part { return a.notifier })
	return nil
}

// Notifier tells operators what happens; nil: the configuration has no receiver.
func (a *App) Notifier() Notifier { return a.notifier }

// readNotify leaves the option to the module.
func (a *App) readNotify(d *caddyfile.Dispenser, _ string) error {
	if _, err := caddy.GetModule(notifyModule); err != nil {
		return d.WrapErr(errNoNotify)
	}
	module, err := caddyfile.UnmarshalModule(d, notifyModule)
	if err == nil {
		a.NotifyRaw = caddyconfig.JSON(module, nil)
	}
	return err
}
