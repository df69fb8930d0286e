package journals

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
)

// MirrorModule is the module stockgate.mirror: it keeps numbers of the sales current in a Redis of
// the shop's own.
type MirrorModule interface {
	// Mirrors reports whether one of these sales may be mirrored. None, or one with a
	// placeholder, is any sale.
	Mirrors(sales ...string) bool
	// Identity is equal for two modules that write the same keys in the same way.
	Identity() string
	// Open returns what mirrors the sales of an edge until its context ends. It does not wait for
	// the shop's Redis.
	Open(d *edgeruntime.Runtime, log *zap.Logger) (run func(context.Context), err error)
}

const mirrorModule = "stockgate.mirror"

var errNoMirror = errors.New("mirror: this Caddy was built without it: build it with github.com/stockgate/stockgate/caddymodule/mirror, or leave mirror out")

// loadMirror loads the module; nil: there is no mirror.
func loadMirror(ctx caddy.Context, config json.RawMessage) (MirrorModule, error) {
	if len(config) == 0 {
		return nil, nil
	}
	if _, err := caddy.GetModule(mirrorModule); err != nil {
		return nil, errNoMirror
	}
	loaded, err := ctx.LoadModuleByID(mirrorModule, config)
	if err != nil {
		return nil, err
	}
	return loaded.(MirrorModule), nil
}

// ReadMirror leaves the option to the module.
func ReadMirror(into *json.RawMessage) func(*caddyfile.Dispenser, string) error {
	return func(d *caddyfile.Dispenser, _ string) error {
		if _, err := caddy.GetModule(mirrorModule); err != nil {
			return d.WrapErr(errNoMirror)
		}
		module, err := caddyfile.UnmarshalModule(d, mirrorModule)
		if err == nil {
			*into = caddyconfig.JSON(module, nil)
		}
		return err
	}
}
