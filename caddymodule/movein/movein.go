// Package movein lets `caddy stockgate sale apply` take over what a shop's own script has kept in
// Redis. A build that does not import it refuses sale files that name a shop's keys.
package movein

import (
	"github.com/caddyserver/caddy/v2"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/internal/ledger/movein"
	"github.com/stockgate/stockgate/internal/sale"
)

func init() { caddy.RegisterModule(MoveIn{}) }

// MoveIn reads the keys of a shop's own script. It has no options: sale files name the keys.
type MoveIn struct{}

// CaddyModule returns the Caddy module information.
func (MoveIn) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "stockgate.move_in", New: func() caddy.Module { return new(MoveIn) }}
}

// Open makes the source of a sale file.
func (MoveIn) Open(from sale.MoveFrom) (app.MoveInSource, error) { return movein.Open(from) }

// Interface guards
var _ app.MoveInModule = MoveIn{}
