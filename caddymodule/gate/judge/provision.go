package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/gate/option/ratelimit"
	"github.com/stockgate/stockgate/caddymodule/guard"
	"github.com/stockgate/stockgate/caddymodule/internal/matchers"
	"github.com/stockgate/stockgate/filters/attempt"
	"github.com/stockgate/stockgate/filters/refuse"
	"github.com/stockgate/stockgate/internal/sale"
)

// Open prepares what reads attempts and judges them.
func (j *Judge) Open(ctx caddy.Context) error {
	if err := j.Conflict(); err != nil {
		return err
	}
	keys, err := j.open(ctx)
	if err != nil {
		return err
	}
	if err := j.provisionFilters(); err != nil {
		return err
	}
	if err := j.checkSlots(); err != nil {
		return err
	}
	return errors.Join(j.rates.Open(j.Name, j.Rates, keys), j.challenge.Open(j.Challenge, j.Name, j.OnlyChecks()))
}

// Serve tells the server and its guards about the judge, which then judges. exitsAs are the paths under which its handler's
// orders leave; nil: the paths of the handler's matcher.
func (j *Judge) Serve(ctx caddy.Context, exitsAs *caddyhttp.MatchPath) error {
	if err := j.openServer(ctx, exitsAs); err != nil {
		return err
	}
	if !j.InShadow {
		guard.WatchExits(ctx, j.server)
		if err := j.provisionFast(); err != nil {
			return err
		}
	}
	j.compileRules()
	Of(j.app).add(j)
	return nil
}

// open prepares what reads attempts. It returns the keys of the rates.
func (j *Judge) open(ctx caddy.Context) (keys []attempt.RateKey, err error) {
	j.ctx, j.log = ctx, ctx.Logger()
	j.server, _ = ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
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

// InSite adds the site and the gate to an error of provisioning, of which Caddy names positions only.
func (j *Judge) InSite(ctx caddy.Context, err error) error {
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

// Close releases all that Open has acquired, even if it has failed halfway.
func (j *Judge) Close() error {
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

// openServer tells the server about the judge. A judge in shadow refuses nothing there.
func (j *Judge) openServer(ctx caddy.Context, exitsAs *caddyhttp.MatchPath) error {
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
		Name: j.Name, Check: j.OnlyChecks(), Shadow: j.InShadow, ExitsAs: exitsAs, AlsoQuery: queries, Refuser: j.refuser,
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
