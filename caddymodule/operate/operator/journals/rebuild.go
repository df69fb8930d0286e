package journals

import (
	"context"
	"net/http"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/caddymodule/internal/request"
	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
	"github.com/stockgate/stockgate/caddymodule/operate/operator/serve"
	"github.com/stockgate/stockgate/internal/ledger/recovery"
)

// errNoLedger says that this edge has no ledger to rebuild a sale from.
var errNoLedger = request.Bad("this Caddy has no ledger: give it the `ledger` that followed the sale, or ask an edge that has it")

func rebuildSale(o *serve.Operator, r *http.Request) (any, error) {
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
	options := recovery.RebuildOptions{By: o.By}
	for name, into := range map[string]*bool{"dry_run": &options.DryRun, "open": &options.Open, "force": &options.Force} {
		if *into, err = request.Flag(query, name); err != nil {
			return nil, err
		}
	}
	from := o.App.Journals().Ledger()
	if from == nil {
		return nil, errNoLedger
	}
	// it goes on after the client has disconnected: half of a sale sells nothing
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.Ctx), adminapi.RebuildTimeout)
	defer cancel()
	done, err := recovery.Rebuild(ctx, from, o.Runtime.Store, id, options)
	if options.DryRun || err != nil {
		return done, o.NoSale(id, err)
	}
	// the log too has what the operator needs to know: they may not have waited for the answer
	o.Ctx = ctx
	return done, o.Noted(nil, "sale rebuilt from the ledger", zap.String("sale", id), zap.String("found", string(done.Found)),
		zap.String("status", string(done.Status)), zap.Int64("entry", done.Ledger.Seq), zap.Int64("missing_that_are_known", done.Missing.AtLeast), zap.Bool("more_may_be_missing", done.Missing.Unknown), zap.Strings("notes", done.Notes))
}
