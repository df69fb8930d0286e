// Package mirror lets edges keep numbers of the sales current in a Redis of the shop's own: the
// option mirror. A build that does not import it has no such option.
package mirror

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/caddymodule/edgeruntime"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
	"github.com/stockgate/stockgate/caddymodule/internal/meter"
	"github.com/stockgate/stockgate/internal/ledger/mirror"
)

func init() { caddy.RegisterModule(new(Mirror)) }

// Mirror is a Redis of the shop's own in which one edge keeps numbers of the sales current, for
// the shop's other readers. It is written and never read to decide anything. Every edge must
// have the same one.
type Mirror struct {
	// Redis is a redis://, rediss:// or unix:// URL of a server, or one with +sentinel or
	// +cluster in the scheme. It may contain placeholders such as {env.SHOP_REDIS}. Required.
	Redis string `json:"redis"`
	// Sales are the only ones that are mirrored; unless it is one, every key has `{sale}`. Default: all.
	Sales []string `json:"sales,omitempty"`
	// Keys are what is written. At least one is required.
	Keys []Key `json:"keys"`

	options mirror.Options
}

// Key is a number of each item in the shop's Redis.
type Key struct {
	// Key has {sku} in it, and if wanted {region} and {sale}; \\{ is a brace. Without {region}
	// the regions of an item are summed up.
	Key string `json:"key"`
	// Field is the field of a hash. Default: the key is a number itself.
	Field string `json:"field,omitempty"`
	// Value is available, taken (held, in doubt or confirmed), confirmed or stock.
	Value string `json:"value"`
}

// CaddyModule returns the Caddy module information.
func (*Mirror) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "stockgate.mirror", New: func() caddy.Module { return new(Mirror) }}
}

// Provision fills in the placeholders and checks all fields. It does not connect.
func (m *Mirror) Provision(caddy.Context) error {
	m.options = mirror.Options{Address: caddy.NewReplacer().ReplaceKnown(m.Redis, ""), Sales: m.Sales}
	for _, k := range m.Keys {
		m.options.Targets = append(m.options.Targets, mirror.Target{Key: k.Key, Field: k.Field, Value: k.Value})
	}
	if err := m.options.Validate(); err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	return nil
}

// Mirrors reports whether one of these sales may be mirrored. None, or one with a placeholder, is
// any sale.
func (m *Mirror) Mirrors(sales ...string) bool {
	return len(sales) == 0 || len(m.Sales) == 0 || slices.ContainsFunc(sales, func(sale string) bool {
		return strings.Contains(sale, "{") || slices.Contains(m.Sales, sale)
	})
}

// Identity is equal for two mirrors with the same options.
func (m *Mirror) Identity() string { return fmt.Sprintf("%+v", m.options) }

// Open returns what mirrors the sales of an edge until its context ends.
func (m *Mirror) Open(d *edgeruntime.Runtime, log *zap.Logger) (run func(context.Context), err error) {
	writer, err := mirror.New(d.Store.Journal(), d.Store, m.options, log, meter.JournalService{})
	if err != nil {
		return nil, err
	}
	return writer.Run, nil
}

// UnmarshalCaddyfile reads the option. Syntax:
//
//	mirror <url> {
//		sales <sale...>
//		set   <key> available|taken|confirmed|stock
//		hset  <key> <field> available|taken|confirmed|stock
//	}
func (m *Mirror) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // mirror
	args, err := directive.Arguments(d, "mirror <url> { … }", 1, 1)
	if err != nil {
		return err
	}
	at := *d
	m.Redis = args[0]
	err = directive.ReadBlock(d, map[string]directive.Option{
		"sales": {Usage: "sales <sale...>", Read: directive.Texts(&m.Sales)},
		// writes a number of each item to a key with `{sku}` and, if wanted, `{region}` and `{sale}`.
		"set": {Usage: "set <key> available|taken|confirmed|stock", List: true, Read: func(d *caddyfile.Dispenser, usage string) error {
			args, err := directive.Arguments(d, usage, 2, 2)
			if err == nil {
				m.Keys = append(m.Keys, Key{Key: args[0], Value: args[1]})
			}
			return err
		}},
		// writes it to a field of a hash.
		"hset": {Usage: "hset <key> <field> available|taken|confirmed|stock", List: true, Read: func(d *caddyfile.Dispenser, usage string) error {
			args, err := directive.Arguments(d, usage, 3, 3)
			if err == nil {
				m.Keys = append(m.Keys, Key{Key: args[0], Field: args[1], Value: args[2]})
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
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner     = (*Mirror)(nil)
	_ caddyfile.Unmarshaler = (*Mirror)(nil)
	_ journals.MirrorModule = (*Mirror)(nil)
	_ mirror.Metrics        = meter.JournalService{}
)
