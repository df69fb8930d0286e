package gate

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/probe"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/refuse"
)

// provisionReader prepares what reads an attempt. keys are those of the rates.
func (g *Gate) provisionReader(keys []attempt.RateKey) (err error) {
	if g.JWT != nil {
		if g.bearerKey, g.bearer, err = g.JWT.Open(); err != nil {
			return fmt.Errorf("jwt: %w", err)
		}
	}
	if g.scope, err = g.Options.Open(); err != nil {
		return err
	}
	if g.reader, err = g.newReader(keys); err != nil {
		return err
	}
	return g.provisionLookup()
}

// provisionFilters prepares refusals, deny, allow and other_items.
func (g *Gate) provisionFilters() (err error) {
	if g.refuser, err = refuse.New(g.Refusals); err != nil {
		return err
	}
	g.refuser.AsksToken = g.JWT != nil
	if err := g.lists.Open(g.app.NamedLists(), g.Deny, g.Allow); err != nil {
		return err
	}
	switch g.OtherItems {
	case "", "refuse":
	case "pass":
		g.app.WantOthers()
	default:
		return fmt.Errorf("other_items %q: there are refuse and pass", g.OtherItems)
	}
	return nil
}

// provisionHolds prepares in-flight slots, and the options of holds unless the gate only
// checks.
func (g *Gate) provisionHolds() (err error) {
	if g.MaxInFlight < 0 {
		return fmt.Errorf("max_in_flight must be positive")
	}
	if g.Check && g.MaxInFlight > 0 {
		g.passing = filters.NewSlots(g.MaxInFlight)
	}
	if err := g.provisionQueue(); err != nil {
		return err
	}
	if g.MaxInFlight == 0 {
		g.MaxInFlight = defaultMaxInFlight
	}
	if g.Queue == nil {
		g.places.Open(g.MaxInFlight, g.MaxInFlight, g.log)
	} else {
		g.places.Open(g.Queue.Most+g.Queue.AtOnce, g.Queue.AtOnce, g.log)
	}
	g.asking = filters.NewSlots(g.MaxInFlight)
	if g.Check {
		return nil
	}
	if err := g.provisionTimes(); err != nil {
		return err
	}
	if g.InDoubt != nil {
		g.probe, err = g.InDoubt.Compile(&probe.Gate{Name: g.Name, ByRef: len(g.Ref) > 0, HoldFor: g.holdOptions.HoldFor, Answers: g.Answers, Log: g.log})
	}
	return err
}

// provisionLimits prepares rates, repeats and the challenge.
func (g *Gate) provisionLimits(keys []attempt.RateKey) error {
	if err := errors.Join(g.rates.Open(g.Name, g.Rates, keys), g.rates.OpenRepeats(g.Name, len(g.Ref) > 0, g.Repeats)); err != nil {
		return err
	}
	return g.challenge.Open(g.Challenge, g.Name, g.Check)
}

// provisionServer tells the gate's server and its guards about the gate.
func (g *Gate) provisionServer(ctx caddy.Context) error {
	g.server, _ = ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	g.routes.Of(g.server)
	g.guarded = guard.Gate{Name: g.Name, Check: g.Check, Shadow: g.Shadow, AlsoQuery: g.AlsoQuery, Refuser: g.refuser}
	exits, err := guard.ExitPaths(g.ExitsAs)
	if err != nil {
		return err
	}
	if len(g.ExitsAs) > 0 {
		g.guarded.ExitsAs = exits
	}
	if g.Shadow {
		return nil
	}
	guard.WatchExits(ctx, g.server)
	if g.server != nil && !g.Check {
		g.server.RegisterConnContext(forward.WithConn)
	}
	return g.provisionFast()
}
