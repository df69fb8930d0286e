package judge

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/app"
	"github.com/stockgate/stockgate/caddymodule/guard"
)

// Open prepares what reads attempts and judges them.
func (j *Judge) Open(ctx caddy.Context) error {
	if err := j.Conflict(); err != nil {
		return err
	}
	j.ctx, j.log = ctx, ctx.Logger()
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && server != nil {
		j.server = server
	}
	if j.Name != "" {
		j.log = j.log.With(zap.String("gate", j.Name))
	}
	loaded, err := ctx.App("stockgate")
	if err != nil {
		return err
	}
	j.App = loaded.(*app.App)
	if !j.OnlyChecks() {
		j.seller = j.Own.(Seller)
	}
	return j.filters.Open(ctx, &j.Setup)
}

// CheckStatic is the part of Open that depends on options alone.
func (j *Judge) CheckStatic() error { return j.filters.Check(&j.Setup) }

// Serve tells the server and its guards about the judge, which then judges. exitsAs are the paths under which its handler's
// orders leave; nil: the paths of the handler's matcher.
func (j *Judge) Serve(ctx caddy.Context, exitsAs *caddyhttp.MatchPath) error {
	if err := j.openServer(ctx, exitsAs); err != nil {
		return err
	}
	if !j.InShadow {
		guard.WatchExits(ctx, CaddyServer(j))
		if err := j.provisionFast(); err != nil {
			return err
		}
	}
	j.compileRules()
	Of(j.App).add(j)
	return nil
}

// Close releases all that Open has acquired, even if it has failed halfway.
func (j *Judge) Close() error {
	if j.App != nil {
		Of(j.App).remove(j)
	}
	return j.filters.Close()
}

// openServer tells the server about the judge. A judge in shadow refuses nothing there.
func (j *Judge) openServer(ctx caddy.Context, exitsAs *caddyhttp.MatchPath) error {
	j.App.UsesAddress(ctx, j.log, j.Title(), j.filters.AddressUses(&j.Setup)...)
	server := CaddyServer(j)
	j.routes.Of(j.server)
	order, err := guard.CheckOrder(ctx, server, j.Title())
	if err != nil {
		return err
	}
	queries, err := guard.QueryPaths(j.AlsoQuery)
	if err != nil {
		return err
	}
	j.guarded = guard.Gate{
		Name: j.Name, Check: j.OnlyChecks(), Shadow: j.InShadow, ExitsAs: exitsAs, AlsoQuery: queries, Refuser: j.filters.Refuser,
		ReadsQuery: j.filters.Operations != nil || j.filters.Reader.FindsItemInQuery(), NeedsPayload: !j.buysBare(),
		Warnings: append(order, guard.AvoidableOn(ctx, server)...),
	}
	j.clerk.Open(&j.Setup, &j.filters, queries, j.log)
	j.openBypass()
	if prefixes, asks := j.Prefixes(); asks {
		j.guarded.Warnings = append(j.guarded.Warnings, prefixes.Around(ctx)...)
	}
	for _, warning := range j.guarded.Warnings {
		j.log.Warn(warning)
	}
	j.LookAround(ctx)
	for _, risk := range j.Risks() {
		j.log.Warn(risk.Text, zap.String("about", risk.About))
	}
	return nil
}
