package gate

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/asking"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/filters"
)

const defaultMaxInFlight = 256

// provisionHolds prepares in-flight slots, and what asks the shop how orders ended.
func (g *Gate) provisionHolds() {
	if g.MaxInFlight == 0 {
		g.MaxInFlight = defaultMaxInFlight
	}
	if most := g.atOnce(); g.Queue == nil {
		g.slots.Open(most, most, g.Log())
	} else {
		g.slots.Open(g.Queue.Most+most, most, g.Log())
	}
	g.asking, g.bypassing = filters.NewSlots(g.MaxInFlight), filters.NewSlots(g.atOnce())
	g.inquirer = asking.New(&g.terms, g.Log())
}

// atOnce is how many orders are at the shop at a time.
func (g *Gate) atOnce() int {
	if g.Queue != nil {
		return g.Queue.AtOnce
	}
	return g.MaxInFlight
}

// provisionServer tells the gate's server and its guards about the gate.
func (g *Gate) provisionServer(ctx caddy.Context) error {
	var exitsAs *caddyhttp.MatchPath
	if len(g.ExitsAs) > 0 {
		var err error
		if exitsAs, err = guard.ExitPaths(g.ExitsAs); err != nil {
			return err
		}
	}
	if err := g.Serve(ctx, exitsAs); err != nil {
		return err
	}
	g.printOrder()
	if g.Server() != nil && !g.Shadow {
		g.Server().RegisterConnContext(forward.WithConn)
	}
	return Of(g.App).add(g)
}
