package app

import (
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/mirror"
)

// Mirror is a Redis of the shop's own in which one edge keeps numbers of the sales current, for
// the shop's other readers. It is written and never read to decide anything. Every edge must
// have the same one.
type Mirror struct {
	// Redis is a redis://, rediss:// or unix:// URL of a server, or one with +sentinel or
	// +cluster in the scheme. It may contain placeholders such as {env.SHOP_REDIS}. Required.
	Redis string `json:"redis"`
	// Sales limits what is mirrored to these sales. Default: all; then every key has {sale}.
	Sales []string `json:"sales,omitempty"`
	// Keys are what is written. At least one is required.
	Keys []MirrorKey `json:"keys"`
}

// MirrorKey is a number of each item in the shop's Redis.
type MirrorKey struct {
	// Key has {sku} in it, and if wanted {region} and {sale}; \\{ is a brace. Without {region}
	// the regions of an item are summed up.
	Key string `json:"key"`
	// Field is the field of a hash. Default: the key is a number itself.
	Field string `json:"field,omitempty"`
	// Value is available, taken (held, in doubt or confirmed), confirmed or stock.
	Value string `json:"value"`
}

// options fills in the placeholders and checks all fields.
func (m *Mirror) options() (mirror.Options, error) {
	o := mirror.Options{Address: caddy.NewReplacer().ReplaceKnown(m.Redis, ""), Sales: m.Sales}
	for _, k := range m.Keys {
		o.Targets = append(o.Targets, mirror.Target{Key: k.Key, Field: k.Field, Value: k.Value})
	}
	return o, o.Validate()
}

// Mirrors says whether one of these sales may be mirrored. None, or one with a placeholder, is
// any sale.
func (a *App) Mirrors(sales ...string) bool {
	if a.Mirror == nil {
		return false
	}
	return len(sales) == 0 || len(a.Mirror.Sales) == 0 || slices.ContainsFunc(sales, func(sale string) bool {
		return strings.Contains(sale, "{") || slices.Contains(a.Mirror.Sales, sale)
	})
}

// readMirror reads the shop's Redis.
func (a *App) readMirror(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 1)
	if err != nil {
		return err
	}
	at := *d
	m := &Mirror{Redis: args[0]}
	err = directive.ReadBlock(d, map[string]directive.Option{
		"sales": {Usage: "sales <sale...>", Read: directive.Texts(&m.Sales)},
		"set": {Usage: "set <key> available|taken|confirmed|stock", List: true, Read: func(d *caddyfile.Dispenser, usage string) error {
			args, err := directive.Arguments(d, usage, 2, 2)
			if err == nil {
				m.Keys = append(m.Keys, MirrorKey{Key: args[0], Value: args[1]})
			}
			return err
		}},
		"hset": {Usage: "hset <key> <field> available|taken|confirmed|stock", List: true, Read: func(d *caddyfile.Dispenser, usage string) error {
			args, err := directive.Arguments(d, usage, 3, 3)
			if err == nil {
				m.Keys = append(m.Keys, MirrorKey{Key: args[0], Field: args[1], Value: args[2]})
			}
			return err
		}},
	})
	if err != nil {
		return err
	}
	if len(m.Keys) == 0 {
		return at.Errf("mirror has no key: write `set store_{sku} available` or `hset goods_{sku} ordered taken` in its block")
	}
	a.Mirror = m
	return nil
}
