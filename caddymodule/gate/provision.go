package gate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/forward"
	"github.com/stockgate/stockgate/caddymodule/gate/option/probe"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
	"github.com/stockgate/stockgate/filters"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/outcome"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
	"github.com/stockgate/stockgate/internal/store/record"
)

// open prepares what reads attempts. It returns the keys of the rates.
func (j *Judge) open(ctx caddy.Context) (keys []attempt.RateKey, err error) {
	j.ctx, j.log = ctx, ctx.Logger()
	if j.Name != "" {
		j.log = j.log.With(zap.String("gate", j.Name))
	}
	loaded, err := ctx.App("stockgate")
	if err != nil {
		return nil, err
	}
	j.app = loaded.(*app.App)
	if keys, err = ratelimit.Keys(j.Rates); err != nil {
		return nil, err
	}
	if err := j.provisionReader(keys); err != nil {
		return nil, err
	}
	return keys, j.credentials.Provision(ctx, j.OneAtATime)
}

// inSite adds the site and the gate to an error of provisioning, of which Caddy names positions only.
func (j *Judge) inSite(ctx caddy.Context, err error) error {
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if err == nil || server == nil {
		return err
	}
	site := "the site at " + strings.Join(server.Listen, ", ")
	if hosts := matchers.Hosts(ctx, server); len(hosts) > 0 {
		site = "the site " + strings.Join(hosts, ", ")
	}
	if strings.HasPrefix(err.Error(), j.Title()) {
		return fmt.Errorf("in %s: %w", site, err)
	}
	return fmt.Errorf("in %s, %s: %w", site, j.Title(), err)
}

// close releases all that open has acquired, even if it has failed halfway.
func (j *Judge) close() error {
	if j.app != nil {
		Of(j.app).remove(j)
	}
	j.lookup.Close()
	return errors.Join(j.rates.Close(), j.challenge.Close(), j.bearer.Close())
}

// provisionReader prepares what reads an attempt. keys are those of the rates.
func (j *Judge) provisionReader(keys []attempt.RateKey) (err error) {
	if len(j.JWT) > 0 {
		if j.bearer, err = j.JWT.Open(); err != nil {
			return fmt.Errorf("jwt: %w", err)
		}
	}
	if j.scope, err = j.Options.Open(j.expressions()); err != nil {
		return err
	}
	if j.reader, err = j.newReader(keys); err != nil {
		return err
	}
	return j.provisionLookup()
}

// provisionFilters prepares refusals, deny, allow and other_items.
func (j *Judge) provisionFilters() (err error) {
	if j.refuser, err = j.newRefuser(); err != nil {
		return err
	}
	j.refuser.AsksToken = len(j.JWT) > 0
	if err := j.lists.Open(j.app.NamedLists(), j.Deny, j.Allow); err != nil {
		return err
	}
	if j.OtherItems == "pass" {
		j.app.WantOthers()
	}
	return j.checkOtherItems()
}

// checkOtherItems reports a word that is none.
func (j *Judge) checkOtherItems() error {
	if !slices.Contains([]string{"", "refuse", "pass"}, j.OtherItems) {
		return fmt.Errorf("other_items %q: there are refuse and pass", j.OtherItems)
	}
	return nil
}

// newRefuser compiles the refusals.
func (j *Judge) newRefuser() (*refuse.Refuser, error) {
	for _, style := range j.Refusals {
		if slices.Contains(style.Reasons, string(sale.ClosedDoor)) {
			return nil, errors.New("refuse closed_door: no gate refuses for that reason: write the answer behind `close` in stockgate_guard")
		}
	}
	texts, err := j.Messages.Over(j.app.Messages)
	if err != nil {
		return nil, err
	}
	return refuse.New(j.Refusals, texts)
}

// provisionHolds prepares in-flight slots, and the options of holds.
func (g *Gate) provisionHolds() (err error) {
	if err := g.checkSlots(); err != nil {
		return err
	}
	if err := g.provisionQueue(); err != nil {
		return err
	}
	if g.MaxInFlight == 0 {
		g.MaxInFlight = defaultMaxInFlight
	}
	if g.Queue == nil {
		g.slots.Open(g.MaxInFlight, g.MaxInFlight, g.log)
	} else {
		g.slots.Open(g.Queue.Most+g.Queue.AtOnce, g.Queue.AtOnce, g.log)
	}
	g.asking = filters.NewSlots(g.MaxInFlight)
	if err := g.provisionTimes(); err != nil {
		return err
	}
	if g.InDoubt != nil {
		g.probe, err = g.InDoubt.Compile(g.ofProbe())
	}
	return err
}

// ofProbe is what a probe knows of the gate.
func (g *Gate) ofProbe() *probe.Gate {
	return &probe.Gate{Name: g.Name, ByRef: len(g.Ref) > 0, HoldFor: g.holdOptions.HoldFor, Answers: g.Answers, MaxAnswer: g.maxAnswer(), Log: g.log}
}

// openLimits prepares the rates and the challenge.
func (j *Judge) openLimits(keys []attempt.RateKey) error {
	return errors.Join(j.rates.Open(j.Name, j.Rates, keys), j.challenge.Open(j.Challenge, j.Name, j.OnlyChecks()))
}

// openServer tells the server about the judge. A judge in shadow refuses nothing there.
func (j *Judge) openServer(ctx caddy.Context, inShadow bool) error {
	j.server, _ = ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	j.app.UsesAddress(ctx, j.log, j.Title(), j.addressUses()...)
	j.routes.Of(j.server)
	order, err := guard.CheckOrder(ctx, j.server, j.Title())
	if err != nil {
		return err
	}
	queries, err := guard.QueryPaths(j.AlsoQuery)
	if err != nil {
		return err
	}
	j.guarded = guard.Gate{
		Name: j.Name, Check: j.OnlyChecks(), Shadow: inShadow, AlsoQuery: queries, Refuser: j.refuser,
		ReadsQuery: j.scope != nil || j.reader.FindsItemInQuery(), NeedsPayload: !j.buysBare(),
		Warnings: append(order, guard.AvoidableOn(ctx, j.server)...),
	}
	j.openBypass()
	if prefixes, asks := j.prefixes(); asks {
		j.guarded.Warnings = append(j.guarded.Warnings, prefixes.Around(ctx, j.server)...)
	}
	for _, warning := range j.guarded.Warnings {
		j.log.Warn(warning)
	}
	j.around, j.hosts = aroundIn(ctx, j.server), matchers.Hosts(ctx, j.server)
	j.logRisks()
	return nil
}

// provisionServer tells the gate's server and its guards about the gate.
func (g *Gate) provisionServer(ctx caddy.Context) error {
	if err := g.openServer(ctx, g.Shadow); err != nil {
		return err
	}
	g.printOrder(ctx)
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
	if g.server != nil {
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
	if g.MaxAnswer != 0 && (g.MaxAnswer < leastAnswer || g.MaxAnswer > mostAnswer) {
		return errors.New("max_answer: an answer of the shop is read up to 1KiB at least and 16MiB at most")
	}
	if g.outcomes, err = outcome.Compile(g.Rules, g.Answers, g.mode() == record.ModeBackend || g.Ask != nil); err != nil || g.Ask == nil {
		return err
	}
	g.outcomes.Otherwise = outcome.InDoubt
	g.asksLater, g.after = filters.NewSlots(maxAsksLater), time.AfterFunc
	if g.ask, err = g.Ask.Compile(); err != nil {
		return err
	}
	g.ask.MaxAnswer = g.maxAnswer()
	return g.knowsNames("outcome ask", g.ask)
}

// The bounds of max_answer.
const (
	leastAnswer = 1 << 10
	mostAnswer  = 16 << 20
)

// maxAnswer is how many bytes of an answer of the shop are read.
func (g *Gate) maxAnswer() int { return cmp.Or(int(g.MaxAnswer), outcome.DefaultMaxBody) }

// outcomeRisks returns warnings about rules that probably take an answer of the shop for its contrary.
func (g *Gate) outcomeRisks() []string {
	risks := outcome.Risks(g.Rules, g.Answers)
	if g.Lookup != nil && (g.Outcome == "" || g.Outcome == "response") {
		risks = append(risks, responseToCart)
	}
	if g.Ask != nil && g.Ask.ByAnswer() && (g.InDoubt == nil || g.InDoubt.Probe == "") {
		risks = append(risks, unnamedOrder)
	}
	if g.InDoubt != nil {
		for _, risk := range outcome.Risks(g.InDoubt.Rules, g.Answers) {
			risks = append(risks, "in_doubt probe: "+risk)
		}
	}
	return risks
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
	return nil
}

// graphQLConflict reports a gate that takes the status of a GraphQL server for its decision:
// it is 200 where the shop refuses too, and unsold units would be confirmed.
func (g *Gate) graphQLConflict() error {
	if len(g.GraphQL) == 0 {
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
