package app

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// LedgersNamespace is the namespace of the modules that can keep the ledger.
const LedgersNamespace = "stockgate.ledgers"

// readLedger reads the kind of ledger; the module reads the rest of the line.
func (a *App) readLedger(d *caddyfile.Dispenser, usage string) error {
	if !d.NextArg() {
		return d.Errf("wrong number of arguments: write `%s`", usage)
	}
	name := d.Val()
	if name == "off" {
		_, err := directive.Arguments(d, usage, 0, 0)
		return err
	}
	// The word may be an address with a password: the error does not repeat it.
	if !slices.Contains(LedgerNames(), name) {
		return d.Errf("there is no such ledger in this Caddy: write `%s`; it has %s", usage, strings.Join(LedgerNames(), ", "))
	}
	module, err := caddyfile.UnmarshalModule(d, LedgersNamespace+"."+name)
	if err != nil {
		return err
	}
	a.LedgerRaw = caddyconfig.JSONModuleObject(module, "driver", name, nil)
	return nil
}

// LedgerNames returns the names of the ledger modules in this program.
func LedgerNames() []string {
	var names []string
	for _, info := range caddy.GetModules(LedgersNamespace) {
		names = append(names, info.ID.Name())
	}
	if names == nil {
		names = []string{"none"}
	}
	return names
}

func (j *Journal) readCaddyfile(d *caddyfile.Dispenser, usage string) error {
	if _, err := directive.Arguments(d, usage, 0, 0); err != nil {
		return err
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		"keep": {Usage: "keep <duration>", Read: directive.Duration(&j.Keep)},
		"most": {Usage: "most <number>", Read: func(d *caddyfile.Dispenser, usage string) error {
			args, err := directive.Arguments(d, usage, 1, 1)
			if err != nil {
				return err
			}
			if j.Most, err = strconv.ParseInt(args[0], 10, 64); err != nil || j.Most <= 0 {
				return d.Errf("%q is not a whole number above 0", args[0])
			}
			return nil
		}},
	})
}
