package operator

import (
	"context"
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
)

// errNoLedger says that this edge has no ledger to rebuild a sale from.
var errNoLedger = request.Bad("this Caddy has no ledger: give it the `ledger` that followed the sale, or ask an edge that has it")

func (o *operator) rebuildSale(r *http.Request) (any, error) {
	id, err := request.SaleID(r)
	if err != nil {
		return nil, err
	}
	query, err := request.Query(r, "from", "dry_run", "open", "force")
	if err != nil {
		return nil, err
	}
	if query.Get("from") != "ledger" {
		return nil, request.Bad("a sale is rebuilt from the ledger only: say from=ledger")
	}
	options := recovery.RebuildOptions{By: o.by}
	for name, into := range map[string]*bool{"dry_run": &options.DryRun, "open": &options.Open, "force": &options.Force} {
		if *into, err = request.Flag(query, name); err != nil {
			return nil, err
		}
	}
	from := o.app.Ledger()
	if from == nil {
		return nil, errNoLedger
	}
	// it goes on after the client has disconnected: half of a sale sells nothing
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.ctx), adminapi.RebuildTimeout)
	defer cancel()
	done, err := recovery.Rebuild(ctx, from, o.runtime.Store, id, options)
	if options.DryRun || err != nil {
		return done, o.noSale(id, err)
	}
	// the log too has what the operator needs to know: they may not have waited for the answer
	o.ctx = ctx
	return done, o.noted(nil, "sale rebuilt from the ledger", zap.String("sale", id), zap.String("found", string(done.Found)),
		zap.String("status", string(done.Status)), zap.Int64("entry", done.Ledger.Seq), zap.Int64("missing_that_are_known", done.Missing.AtLeast), zap.Bool("more_may_be_missing", done.Missing.Unknown), zap.Strings("notes", done.Notes))
}
