package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/stockgate/stockgate/attempt"
	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/probe"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/outcome"
	"github.com/stockgate/stockgate/record"
	"github.com/stockgate/stockgate/refuse"
	"github.com/stockgate/stockgate/sale"
)

// provisionReader prepares what reads an attempt. keys are those of the rates.
func (g *Gate) provisionReader(keys []attempt.RateKey) (err error) {
	if g.JWT != nil {
		if g.bearerKey, g.bearer, err = g.JWT.Open(); err != nil {
			return fmt.Errorf("jwt: %w", err)
		}
	}
	if g.scope, err = g.Options.Open(g.expressions()); err != nil {
		return err
	}
	if g.reader, err = g.newReader(keys); err != nil {
		return err
	}
	for _, risk := range g.LineRisks() { // a configuration in JSON has no other warnings
		g.log.Warn(risk)
	}
	return g.provisionLookup()
}

// provisionFilters prepares refusals, deny, allow and other_items.
func (g *Gate) provisionFilters() (err error) {
	if g.refuser, err = g.newRefuser(); err != nil {
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

// newRefuser compiles the refusals.
func (g *Gate) newRefuser() (*refuse.Refuser, error) {
	for _, style := range g.Refusals {
		if slices.Contains(style.Reasons, string(sale.ClosedDoor)) {
			return nil, errors.New("refuse closed_door: no gate refuses for that reason: write the answer behind `close` in stockgate_guard")
		}
	}
	return refuse.New(g.Refusals)
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
	g.app.UsesAddress(ctx, g.log, g.Title(), g.addressUses()...)
	g.printOrder(ctx)
	g.routes.Of(g.server)
	queries, err := guard.QueryPaths(g.AlsoQuery)
	if err != nil {
		return err
	}
	g.guarded = guard.Gate{Name: g.Name, Check: g.Check, Shadow: g.Shadow, AlsoQuery: queries, Refuser: g.refuser, Avoidable: guard.AvoidableOn(ctx, g.server)}
	for _, warning := range g.guarded.Avoidable {
		g.log.Warn(warning)
	}
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

const (
	backendHoldFor        = 15 * time.Minute
	backendForwardTimeout = 20 * time.Second
)

// mode returns what happens to the gate's holds at their deadline.
func (g *Gate) mode() record.Mode {
	if g.Outcome == "backend" {
		return record.ModeBackend
	}
	return record.ModeResponse
}

// provisionOutcome compiles what decides a reservation.
func (g *Gate) provisionOutcome() (err error) {
	if g.Outcome != "" && g.Outcome != "response" && g.Outcome != "backend" && g.Outcome != "ask" {
		return fmt.Errorf("outcome %q: there are response, ask and backend", g.Outcome)
	}
	if err := g.outcomeConflict(); err != nil {
		return err
	}
	if g.rules, err = outcome.Compile(g.Rules, g.Answers, g.mode() == record.ModeBackend || g.Ask != nil); err != nil || g.Ask == nil {
		return err
	}
	g.rules.Otherwise = outcome.InDoubt
	g.asksLater, g.after = filters.NewSlots(maxAsksLater), time.AfterFunc
	if g.ask, err = g.Ask.Compile(); err != nil {
		return err
	}
	return g.knowsNames("outcome ask", g.ask)
}

// outcomeConflict reports options that a gate cannot use with its outcome.
func (g *Gate) outcomeConflict() error {
	if err := g.askConflict(); err != nil || g.Ask != nil {
		return err
	}
	for name, answer := range g.Answers {
		for _, test := range answer.JSON {
			if slices.Contains(test.Values, outcome.RefValue) && g.InDoubt == nil {
				return fmt.Errorf("@%s compares with {ref}, and the shop is not asked about an order: use it with `outcome ask` or `in_doubt probe`", name)
			}
		}
	}
	if g.mode() != record.ModeBackend {
		return g.graphQLConflict()
	}
	if g.InDoubt != nil {
		return errors.New("outcome backend takes no in_doubt: its holds expire at their deadline, none comes in doubt")
	}
	for _, r := range g.Rules {
		if r.Outcome == "confirm" {
			return errors.New("outcome backend takes no confirm: the shop confirms through stockgate_api")
		}
	}
	return nil
}

// graphQLConflict reports a gate that takes the status of a GraphQL server for its decision:
// it is 200 where the shop refuses too, and unsold units would be confirmed.
func (g *Gate) graphQLConflict() error {
	if len(g.GraphQL) == 0 || g.Check {
		return nil
	}
	for _, r := range g.Rules {
		if r.Outcome != "confirm" {
			continue
		}
		for _, when := range r.When {
			if strings.HasPrefix(when, "@") {
				return nil
			}
		}
	}
	return errors.New("a server of GraphQL answers 200 also where it refuses, so that no status confirms an order: ask it with `outcome ask`, let the shop confirm with `outcome backend`, or say in a matcher what its answer must have, such as `@sold { json !errors }` and `confirm @sold`")
}
